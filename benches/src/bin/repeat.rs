//! One route over and over, for a profiler: `repeat "first run" 256 50000`.

use idempotency_benches::{Candidate, Route, route::Track};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [route, body, requests] = &*arguments else { return Err("repeat ROUTE BODY-BYTES REQUESTS".into()) };
    let route = Route::ALL.into_iter().find(|known| known.name() == route).ok_or("no such route")?;
    let (body, requests) = (body.parse()?, requests.parse::<usize>()?);
    let measured = tokio::spawn(async move {
        let mut track = Track::lay(&Candidate::memory(), route, body).await;
        for _ in 0..requests / 64 {
            let batch = track.requests(64);
            track.send(batch).await;
        }
        track.clear().await;
    });
    Ok(measured.await?)
}
