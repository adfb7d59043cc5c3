//! The pages of the fixture contract.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{sync::mpsc, time::sleep};

use super::http::{Body, Head, Reply, ms};

/// "tea, and cake with it, and tea again" in gzip.
const COMPRESSED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03+IM\xd4QH\xccKQHN\xccNU(\xcf,\xc9P\xc8,\x81\x88\x94\xa4&*$\xa6'f\xe6\x01\x00\x0a\xba\xba\x10$\x00\x00\x00";

#[derive(Debug, Default)]
pub(crate) struct Site {
    /// By what the request says it is counted as.
    runs: Mutex<HashMap<String, u64>>,
    count: AtomicU64,
}

/// What comes out of a handler.
pub(crate) enum Ran {
    Answered(Reply),
    Panicked,
    /// No handler is there for it.
    Nowhere(Reply),
}

impl Site {
    pub(crate) fn reset(&self) {
        self.runs.lock().expect("nobody panics with it").clear();
    }

    pub(crate) async fn run(&self, head: &Head, body: Vec<u8>) -> Ran {
        let is_post = head.method == "POST";
        let known = ["/echo", "/slow", "/counter", "/large", "/stream", "/headers", "/gzip", "/panic"];
        let path = head.path();
        match head.method.as_str() {
            "GET" if path == "/counter" => return Ran::Answered(self.counted(head)),
            "PATCH" if path == "/echo" => {}
            "POST" if known.contains(&path) || path.starts_with("/status/") => {}
            _ if known.contains(&path) => return Ran::Nowhere(Reply::new(405, "text/plain", "no")),
            _ => return Ran::Nowhere(Reply::new(404, "text/plain", "nowhere")),
        }
        if is_post {
            let mut runs = self.runs.lock().expect("nobody panics with it");
            *runs.entry(head.text("x-count-as").unwrap_or_default()).or_default() += 1;
        }
        let run = self.count.fetch_add(1, Ordering::SeqCst).to_string();
        Ran::Answered(match path {
            "/echo" => {
                let content_type = head.text("content-type").unwrap_or("application/octet-stream".to_owned());
                Reply::new(201, &content_type, body)
            }
            "/slow" => {
                let pause = head.number("ms").unwrap_or(0);
                sleep(ms(pause)).await;
                Reply::new(200, "text/plain", format!("slept:{pause}")).with("X-Run", run)
            }
            "/counter" => {
                sleep(ms(head.number("ms").unwrap_or(0))).await;
                Reply::new(200, "application/json", format!("{{\"count\":{run}}}"))
            }
            "/large" => {
                let bytes = usize::try_from(head.number("bytes").unwrap_or(0)).expect("a length");
                Reply::new(200, "application/octet-stream", vec![b'x'; bytes])
            }
            "/stream" => stream(head, &run),
            "/headers" => headers(&run),
            "/gzip" => Reply::new(200, "text/plain", COMPRESSED).with("Content-Encoding", "gzip"),
            "/panic" => return Ran::Panicked,
            _ => match path.rsplit('/').next().and_then(|status| status.parse().ok()).unwrap_or(400) {
                status @ (204 | 304) => Reply::empty(status),
                status => Reply::new(status, "text/plain", format!("status:{status}")),
            },
        })
    }

    fn counted(&self, head: &Head) -> Reply {
        // Another one each time, as a page that is read should be.
        let read = self.count.fetch_add(1, Ordering::SeqCst);
        let count_as = head.text("x-count-as").unwrap_or_default();
        let runs = *self.runs.lock().expect("nobody panics with it").get(&count_as).unwrap_or(&0);
        Reply::new(200, "application/json", format!("{{\"count\":{runs},\"read\":{read}}}"))
    }
}

fn headers(run: &str) -> Reply {
    let fields = [
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("X-Multi", "one"),
        ("X-Multi", "two"),
        ("Link", "</a>; rel=\"item\""),
        ("Link", "</b>; rel=\"next\""),
        ("Location", "/orders/1"),
        ("ETag", "\"v1\""),
    ];
    let reply = Reply::new(201, "application/json", format!("{{\"run\":{run}}}"));
    fields.into_iter().fold(reply, |reply, (name, value)| reply.with(name, value))
}

fn stream(head: &Head, run: &str) -> Reply {
    let (tell, told) = mpsc::channel(1);
    let number = |name, default| head.number(name).unwrap_or(default);
    let (chunks, pause, fails) = (number("chunks", 3), number("interval_ms", 0), head.number("fail_after"));
    let run = run.to_owned();
    tokio::spawn(async move {
        for chunk in 0..chunks {
            if fails.is_some_and(|fails| chunk >= fails) {
                // Who has left needs no news.
                let _ = tell.send(Err(())).await;
                return;
            }
            if chunk > 0 {
                sleep(ms(pause)).await;
            }
            if tell.send(Ok(format!("{chunk} of {run}\n").into_bytes())).await.is_err() {
                return;
            }
        }
    });
    let reply = Reply::new(200, "text/plain", "");
    Reply { body: Body::Stream(told), ..reply }
}
