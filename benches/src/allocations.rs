//! What the allocator is asked for by one request, its requests to other threads included.

use std::alloc::System;

use stats_alloc::{Region, StatsAlloc};

use crate::{Candidate, Route, route::Track, table::Table};

const REQUESTS: usize = 2_000;

/// Counts on `allocator`, which must be the process's own, and prints the table.
pub async fn count(allocator: &StatsAlloc<System>, candidates: Vec<Candidate>, bodies: &[usize]) {
    let mut table = Table::new(&["route", "body", "layer", "allocations", "added", "bytes", "bytes added"]);
    let bare = Candidate::bare();
    for &body in bodies {
        for route in Route::ALL {
            let baseline = of(allocator, &bare, route, body).await;
            for candidate in std::iter::once(&bare).chain(&candidates) {
                let count = of(allocator, candidate, route, body).await;
                table.push(vec![
                    route.name().into(),
                    body.to_string(),
                    candidate.name.into(),
                    format!("{:.1}", count.calls),
                    format!("{:+.1}", count.calls - baseline.calls),
                    format!("{:.0}", count.bytes),
                    format!("{:+.0}", count.bytes - baseline.bytes),
                ]);
            }
        }
    }
    print!("{table}");
}

/// A mean over many requests, so that a map that grows counts by its share.
struct Count {
    /// Allocations and reallocations.
    calls: f64,
    bytes: f64,
}

async fn of(allocator: &StatsAlloc<System>, candidate: &Candidate, route: Route, body: usize) -> Count {
    let mut track = Track::lay(candidate, route, body).await;
    let warm = track.requests(100);
    track.send(warm).await;
    let batch = track.requests(REQUESTS);
    let region = Region::new(allocator);
    track.send(batch).await;
    let change = region.change();
    track.clear().await;
    let share = |total: usize| total as f64 / REQUESTS as f64;
    Count { calls: share(change.allocations + change.reallocations), bytes: share(change.bytes_allocated) }
}
