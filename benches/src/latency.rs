//! The time a request takes, and how much of it a layer adds.
//!
//! A round sends small batches through all candidates in turn, a bare one before each of them, and takes of each
//! candidate the median batch. What a candidate adds in a round is its time less the baseline's of the same round; what
//! it adds at all is the median over the rounds.

use std::time::Instant;

use crate::{
    Candidate, Route,
    route::Track,
    statistics::{median, quantile},
    table::{Row, Table, quotient},
};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How many rounds.
    pub rounds: usize,
    /// How many batches of each candidate a round has.
    pub batches: usize,
    /// How many requests a batch has.
    pub requests: usize,
}

impl Effort {
    /// For requests that take microseconds.
    pub const QUICK: Self = Self { rounds: 15, batches: 12, requests: 64 };
    /// For requests that wait for a disk.
    pub const SLOW: Self = Self { rounds: 15, batches: 3, requests: 16 };
}

/// What one candidate took.
#[derive(Debug, Clone)]
pub struct Taken {
    name: &'static str,
    /// Nanoseconds a request, of each round.
    rounds: Vec<f64>,
    /// Nanoseconds a request above the baseline, of each round.
    added: Vec<f64>,
}

/// Measures `candidates` against a bare router on every route, for each length of bodies, and prints the table. What
/// the first candidates add is given as a share of what the last one does.
pub async fn compare(candidates: Vec<Candidate>, bodies: &[usize], effort: Effort) {
    let mut table =
        Table::new(&["route", "body", "layer", "ns a request", "added", "quartiles", "of the last"]);
    for &body in bodies {
        for route in Route::ALL {
            let taken = race(&candidates, route, body, effort).await;
            let last = median(&taken[taken.len() - 1].added);
            for each in &taken {
                table.push(row(each, route, body, last));
            }
        }
    }
    print!("{table}");
}

fn row(taken: &Taken, route: Route, body: usize, last: f64) -> Row {
    let added = median(&taken.added);
    let quartiles = format!("{:.0}..{:.0}", quantile(&taken.added, 0.25), quantile(&taken.added, 0.75));
    let is_bare = taken.name == "bare";
    vec![
        route.name().into(),
        body.to_string(),
        taken.name.into(),
        format!("{:.0}", median(&taken.rounds)),
        if is_bare { String::new() } else { format!("{added:+.0}") },
        if is_bare { String::new() } else { quartiles },
        if is_bare || added == last { String::new() } else { quotient(added, last) },
    ]
}

/// Bare first, then the candidates.
async fn race(candidates: &[Candidate], route: Route, body: usize, effort: Effort) -> Vec<Taken> {
    let bare = Candidate::bare();
    let field: Vec<&Candidate> = std::iter::once(&bare).chain(candidates).collect();
    let mut tracks = Vec::new();
    for candidate in &field {
        tracks.push(Track::lay(candidate, route, body).await);
    }
    let mut taken: Vec<Taken> = field
        .iter()
        .map(|candidate| Taken { name: candidate.name, rounds: Vec::new(), added: Vec::new() })
        .collect();
    round(&mut tracks, Effort { batches: effort.batches.div_ceil(4), ..effort }).await; // warms up
    for _ in 0..effort.rounds {
        let times = round(&mut tracks, effort).await;
        for (taken, time) in taken.iter_mut().zip(&times) {
            taken.rounds.push(*time);
            taken.added.push(time - times[0]);
        }
    }
    for track in tracks {
        track.clear().await;
    }
    taken
}

/// The median batch of each track, in nanoseconds a request. The baseline runs before every other track, so that
/// nothing is compared with a time long past.
async fn round(tracks: &mut [Track], effort: Effort) -> Vec<f64> {
    let mut batches = vec![Vec::with_capacity(effort.batches); tracks.len()];
    for _ in 0..effort.batches {
        for number in 1..tracks.len() {
            for place in [0, number] {
                batches[place].push(time(&mut tracks[place], effort.requests).await);
            }
        }
    }
    batches.iter().map(|times| median(times)).collect()
}

async fn time(track: &mut Track, requests: usize) -> f64 {
    let batch = track.requests(requests);
    let begun = Instant::now();
    track.send(batch).await;
    begun.elapsed().as_nanos() as f64 / requests as f64
}
