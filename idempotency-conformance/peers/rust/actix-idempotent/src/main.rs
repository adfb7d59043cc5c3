//! actix-idempotent before the pages, with a memory store for the visits it keeps its records in.

mod pages;
mod visits;

use std::{io, net::Ipv4Addr};

use actix_idempotent::{IdempotentFactory, IdempotentOptions};
use actix_session::SessionMiddleware;
use actix_web::{App, HttpServer, cookie::Key, dev::Service, web};

use crate::{pages::Site, visits::Visits};

/// Pages that sleep hold no thread, so one is enough; more than one shows what two do at one moment.
const WORKERS: usize = 2;

#[actix_web::main]
async fn main() -> io::Result<()> {
    let site = web::Data::new(Site::default());
    let visits = Visits::default();
    let key = Key::generate();
    let server = HttpServer::new(move || {
        let visitor = visits::visitor(&key);
        let guarded = web::scope("")
            .wrap(IdempotentFactory::new(IdempotentOptions::default()))
            .wrap(SessionMiddleware::builder(visits.clone(), key.clone()).build())
            .wrap_fn(move |mut request, next| {
                visitor.enter(&mut request);
                next.call(request)
            })
            .configure(pages::inside);
        App::new()
            .app_data(site.clone())
            .app_data(web::PayloadConfig::new(usize::MAX))
            .route("/reset", web::post().to(pages::reset))
            .service(pages::count_beside())
            .service(guarded)
    })
    .workers(WORKERS)
    .bind((Ipv4Addr::LOCALHOST, port()))?;
    for deviation in [
        "none in its options: it hashes method, path, body and the headers it does not leave out, the key among the rest",
        "it has no option that requires a key, and none for how long a record answers but that of the visit",
        "every request is given the cookie of its caller's visit: it remembers nothing for a client without one, and the \
         suite keeps no cookies",
        "visits stand in memory (its examples: Redis) and do not end",
        "GET /counter without a key stands beside the layer, which would repeat its first answer to a visit for ever; with \
         a key it stands behind it",
    ] {
        println!("deviation: {deviation}");
    }
    println!("listening on http://{}", server.addrs()[0]);
    server.run().await
}

/// The number after `--port`; 0 takes a free one.
fn port() -> u16 {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--port");
    arguments.nth(1).map_or(0, |port| port.parse().expect("the port is a number"))
}
