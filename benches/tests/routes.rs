//! Every route leads where its name says, or the benchmark would measure something else.

use idempotency_benches::{Candidate, Route, route::Track};

#[tokio::test]
async fn every_route_leads_where_its_name_says() {
    for candidate in [Candidate::bare(), Candidate::floor(), Candidate::memory()] {
        for route in Route::ALL {
            let mut track = Track::lay(&candidate, route, 256).await;
            let requests = track.requests(3);
            track.send(requests).await; // panics on any other status
            track.clear().await;
        }
    }
}

#[tokio::test]
#[should_panic(expected = "first run")]
async fn a_route_that_leads_elsewhere_is_noticed() {
    let mut track = Track::lay(&Candidate::memory(), Route::FirstRun, 256).await;
    let mut requests = track.requests(1);
    requests[0].headers_mut().insert("idempotency-key", "not, a key".parse().unwrap());
    track.send(requests).await;
}
