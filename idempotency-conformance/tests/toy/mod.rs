//! A server that is right, or wrong in exactly one way, over sockets of its own.

mod fault;
mod http;
mod key;
mod layer;
mod page;
mod record;
mod refusal;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    task::AbortHandle,
    time::sleep,
};

pub(crate) use fault::Fault;
use http::{Head, Reader, Reply, Upload, ms, write};
use layer::{Before, LIMIT, Layer};

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) fault: Option<Fault>,
    pub(crate) ttl: Duration,
    pub(crate) lease: Duration,
    /// Whether a run without an ending is held in doubt, instead of run again.
    pub(crate) holds_doubt: bool,
    /// Whether a copy waits for the end of the run, instead of being refused.
    pub(crate) lets_copies_wait: bool,
    /// What ends when the server is killed.
    lives: &'static Lives,
}

/// Tasks that end when the server is killed.
#[derive(Debug, Default)]
struct Lives(Mutex<Vec<AbortHandle>>);

impl Lives {
    fn add(&self, life: AbortHandle) {
        let mut lives = self.0.lock().expect("nobody panics with it");
        lives.retain(|life| !life.is_finished());
        lives.push(life);
    }

    fn end(&self) {
        self.0.lock().expect("nobody panics with it").drain(..).for_each(|life| life.abort());
    }
}

impl Setup {
    pub(crate) fn new(fault: Option<Fault>, ttl: Duration, lease: Duration) -> Self {
        // One for each server of a test, for as long as the test lives.
        let lives: &'static Lives = Box::leak(Box::default());
        Self { fault, ttl, lease, holds_doubt: false, lets_copies_wait: false, lives }
    }

    pub(crate) fn letting_copies_wait(self) -> Self {
        Self { lets_copies_wait: true, ..self }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

/// Serves until the test ends. While the file is there it is being killed: it goes when the server is up again.
pub(crate) async fn serve(setup: Setup, kill: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let layer = Arc::new(Layer { setup, records: Default::default(), site: Default::default() });
    let watched = Arc::clone(&layer);
    tokio::spawn(async move {
        loop {
            sleep(ms(10)).await;
            if kill.exists() {
                watched.setup.lives.end();
                watched.records.lock().await.restart(&watched.setup);
                std::fs::remove_file(&kill).expect("it was there");
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("clients come");
            let connection = tokio::spawn(connection(stream, Arc::clone(&layer)));
            layer.setup.lives.add(connection.abort_handle());
        }
    });
    url
}

async fn connection(stream: TcpStream, layer: Arc<Layer>) {
    // A socket that cannot be told so is only slower.
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    while let Some(head) = reader.head().await {
        let Some(reply) = exchange(&head, &mut reader, &mut writer, &layer).await else { return };
        let is_bodiless = matches!(reply.status, 204 | 304)
            || reply.fields.iter().any(|(name, _)| name == "Content-Length");
        if !write(&mut writer, reply, !is_bodiless).await {
            return;
        }
    }
}

/// None: the connection ends without an answer.
async fn exchange(
    head: &Head,
    reader: &mut Reader,
    writer: &mut OwnedWriteHalf,
    layer: &Arc<Layer>,
) -> Option<Reply> {
    let setup = layer.setup;
    if head.method == "POST" && head.path() == "/reset" {
        layer.site.reset();
        return Some(Reply::empty(204));
    }
    let before = layer.before(head);
    if let Before::Refused(reply) = before {
        if setup.is(Fault::RefusedBodiesLeft) {
            return Some(reply);
        }
        if setup.is(Fault::OversizedRequestsClaim)
            && let key::Key::Some(key) = key::key(head, None)
        {
            layer.records.lock().await.strand(&key::address(&key, head, &[], setup.fault));
        }
        let is_asked_for = setup.is(Fault::RefusedBodiesAskedFor);
        if !is_asked_for && (head.awaits_continue() || head.length() > LIMIT) {
            return Some(Reply { closes: true, ..reply });
        }
        if head.awaits_continue() {
            ask_for_body(writer).await?;
        }
        return match reader.body(head, setup.fault).await {
            Upload::Whole(_) => Some(reply),
            Upload::Broken | Upload::Corrupt => None,
        };
    }
    if head.awaits_continue() {
        ask_for_body(writer).await?;
    }
    let body = match reader.body(head, setup.fault).await {
        Upload::Whole(body) => body,
        Upload::Corrupt => return Some(Reply { closes: true, ..Reply::new(400, "text/plain", "corrupt") }),
        Upload::Broken => {
            if let (Before::Guarded(key), true) = (before, setup.is(Fault::ClaimsBeforeTheBody)) {
                let address = key::address(&key, head, &[], setup.fault);
                layer.records.lock().await.strand(&address);
            }
            return None;
        }
    };
    match before {
        Before::Guarded(key) => Arc::clone(layer).guard(&key, head.clone(), body, reader.left()).await,
        Before::Pass | Before::Refused(_) => layer.pass(head, body).await,
    }
}

async fn ask_for_body(writer: &mut OwnedWriteHalf) -> Option<()> {
    writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.ok()
}
