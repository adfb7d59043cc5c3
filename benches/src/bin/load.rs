//! The load generator: `load NAME=ADDRESS...`, the first of which is the baseline.

use idempotency_benches::load::{Server, compare};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut servers = Vec::new();
    for argument in std::env::args().skip(1) {
        let (name, address) = argument.split_once('=').ok_or("load NAME=ADDRESS...")?;
        servers.push(Server { name: name.into(), address: address.parse()? });
    }
    Ok(compare(&servers).await?)
}
