//! The layer: what happens to a request between its arrival and its answer.

use std::sync::Arc;

use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::sleep,
};

use super::{
    Setup,
    fault::Fault,
    http::{Body, Head, Reply, ms},
    key::{Key, address, fingerprint, key},
    page::{Ran, Site},
    record::{Records, Stored, Told},
    refusal::{conflict, refusal},
};

/// The longest body that is kept, and the longest that is read.
pub(crate) const LIMIT: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) setup: Setup,
    pub(crate) records: Mutex<Records>,
    pub(crate) site: Site,
}

/// What is decided before the body.
pub(crate) enum Before {
    Pass,
    Refused(Reply),
    Guarded(String),
}

/// An answer, or a closed connection.
pub(crate) type Answered = Option<Reply>;

impl Layer {
    pub(crate) fn before(&self, head: &Head) -> Before {
        let setup = &self.setup;
        let is_guarded = match head.method.as_str() {
            "POST" => true,
            "PATCH" => !setup.is(Fault::PatchUnguarded),
            "PUT" | "DELETE" => setup.is(Fault::PutAndDeleteGuarded),
            "GET" => setup.is(Fault::GetGuarded) && !head.lines("idempotency-key").is_empty(),
            _ => false,
        };
        if !is_guarded || setup.is(Fault::NothingStored) {
            return Before::Pass;
        }
        match key(head, setup.fault) {
            Key::Missing if setup.is(Fault::KeyOptional) => Before::Pass,
            Key::Missing => Before::Refused(refusal(400, "missing-key", setup.fault)),
            Key::Invalid => Before::Refused(refusal(400, "invalid-key", setup.fault)),
            Key::Some(_) if head.length() > LIMIT && !setup.is(Fault::OversizedRequestsRead) => {
                Before::Refused(refusal(413, "payload-too-large", setup.fault))
            }
            Key::Some(key) => Before::Guarded(key),
        }
    }

    pub(crate) async fn pass(&self, head: &Head, body: Vec<u8>) -> Answered {
        match self.site.run(head, body).await {
            Ran::Answered(reply) | Ran::Nowhere(reply) => Some(reply),
            Ran::Panicked => None,
        }
    }

    /// Claims, runs and answers. `left` comes when the client has gone.
    pub(crate) async fn guard(
        self: Arc<Self>,
        key: &str,
        head: Head,
        body: Vec<u8>,
        left: impl Future<Output = ()>,
    ) -> Answered {
        let setup = self.setup;
        if body.len() > LIMIT {
            return Some(refusal(413, "payload-too-large", setup.fault));
        }
        let address = address(key, &head, &body, setup.fault);
        let print = fingerprint(&head, &body, setup.fault);
        let mut told = self.claim(&address, &print).await;
        while setup.lets_copies_wait && matches!(told, Told::Conflict) {
            sleep(ms(20)).await;
            told = self.claim(&address, &print).await;
        }
        let holder = match told {
            Told::Run(holder) => holder,
            Told::Replay(stored) => return Some(stored.reply(&setup)),
            Told::Mismatch => return Some(refusal(422, "fingerprint-mismatch", setup.fault)),
            Told::Doubt => return Some(refusal(409, "outcome-unknown", setup.fault)),
            Told::Conflict => return Some(conflict(setup.lease.as_secs().max(1), setup.fault)),
        };
        let (tell, told) = oneshot::channel();
        let layer = Arc::clone(&self);
        let place = address.clone();
        let run = tokio::spawn(async move {
            let answered = tokio::select! {
                answered = layer.run(&place, holder, &head, body) => answered,
                () = layer.keep(&place, holder) => None,
            };
            // Who has left needs no answer.
            let _ = tell.send(answered);
        });
        setup.lives.add(run.abort_handle());
        tokio::select! {
            answered = told => answered.ok().flatten(),
            () = left => {
                self.leave(&address, holder, &run).await;
                None
            }
        }
    }

    async fn claim(&self, address: &str, fingerprint: &str) -> Told {
        let setup = &self.setup;
        let mut records = self.records.lock().await;
        if let Some(told) = records.look(address, fingerprint, setup) {
            if matches!(told, Told::Conflict) && setup.is(Fault::ConflictsHoldALock) {
                sleep(ms(50)).await;
            }
            return told;
        }
        if setup.is(Fault::ReadThenWrite) {
            drop(records);
            sleep(ms(20)).await;
            records = self.records.lock().await;
        }
        Told::Run(records.grant(address, fingerprint, setup))
    }

    /// Renews the claim for as long as the run lives.
    async fn keep(&self, address: &str, holder: u64) {
        loop {
            sleep(self.setup.lease / 4).await;
            if !self.setup.is(Fault::LeasesNotRenewed) && !self.setup.is(Fault::LateEndingsOverwrite) {
                self.records.lock().await.renew(address, holder, &self.setup);
            }
        }
    }

    async fn leave(&self, address: &str, holder: u64, run: &tokio::task::JoinHandle<()>) {
        match self.setup.fault {
            Some(Fault::RunDiesWithItsClient) => {
                run.abort();
                self.records.lock().await.release(address, holder);
            }
            Some(Fault::KeyFreedWhenTheClientLeaves) => self.records.lock().await.release(address, holder),
            Some(Fault::DeadClaimsStay) => {
                run.abort();
                self.records.lock().await.strand(address);
            }
            _ => {}
        }
    }

    async fn run(self: &Arc<Self>, address: &str, holder: u64, head: &Head, body: Vec<u8>) -> Answered {
        let setup = self.setup;
        let (reply, was_handled) = match self.site.run(head, body).await {
            Ran::Answered(reply) => (reply, true),
            Ran::Nowhere(reply) => (reply, false),
            Ran::Panicked => {
                if !setup.is(Fault::PanicsKeepTheClaim) {
                    self.records.lock().await.release(address, holder);
                }
                let reply = refusal(500, "internal", setup.fault);
                return (!setup.is(Fault::PanicsCloseTheConnection)).then_some(reply);
            }
        };
        let Reply { status, fields, body, .. } = reply;
        let (reply_body, whole) = match body {
            Body::Whole(body) => (Body::Whole(body.clone()), Some(body)),
            Body::Stream(chunks) if setup.is(Fault::StreamsWithheld) => {
                let body = collected(chunks).await?;
                (Body::Whole(body.clone()), Some(body))
            }
            Body::Stream(chunks) => {
                let (tell, told) = mpsc::channel(1);
                let stored = Stored { status, fields: fields.clone(), body: None };
                let layer = Arc::clone(self);
                let place = address.to_owned();
                tokio::spawn(async move { layer.pump(&place, holder, stored, chunks, tell).await });
                (Body::Stream(told), None)
            }
        };
        if let Some(body) = whole {
            let is_kept = self.keeps(status, was_handled, body.len());
            let stored = is_kept.then(|| Stored { status, fields: fields.clone(), body: kept(body) });
            if stored.is_none() && status >= 500 && setup.holds_doubt {
                self.records.lock().await.lapse(address, holder);
            } else {
                self.end(address, holder, stored).await;
            }
        }
        let mut reply = Reply { status, fields, body: reply_body, closes: false };
        if setup.is(Fault::FirstAnswersAltered) && status == 201 {
            reply.status = 200;
        }
        if setup.is(Fault::FirstAnswersMarked) {
            reply = reply.with("Idempotency-Replayed", "true");
        }
        Some(reply)
    }

    fn keeps(&self, status: u16, was_handled: bool, length: usize) -> bool {
        let setup = &self.setup;
        match status {
            _ if length > LIMIT && setup.is(Fault::OversizedResponsesRunAgain) => false,
            _ if !was_handled => setup.is(Fault::RouterRefusalsStored),
            400.. if setup.is(Fault::ErrorsNotStored) => false,
            500.. => setup.is(Fault::ServerErrorsStored),
            401 | 403 | 408 | 423 | 425 | 429 => setup.is(Fault::Transient4xxStored),
            _ => true,
        }
    }

    /// Keeps the outcome, or frees the key.
    async fn end(self: &Arc<Self>, address: &str, holder: u64, stored: Option<Stored>) {
        let setup = self.setup;
        let mut records = self.records.lock().await;
        let Some(stored) = stored else { return records.release(address, holder) };
        let record = records.all.get(address).cloned();
        let late = match setup.fault {
            Some(Fault::CompletesInTwoWrites) => {
                records.release(address, holder);
                ms(20)
            }
            Some(Fault::AnswersBeforeItKeeps) => ms(60),
            _ => {
                records.complete(address, holder, stored, &setup);
                return;
            }
        };
        let (layer, address) = (Arc::clone(self), address.to_owned());
        tokio::spawn(async move {
            sleep(late).await;
            let mut records = layer.records.lock().await;
            if let Some(record) = record {
                records.all.insert(address.clone(), record);
            }
            records.complete(&address, holder, stored, &setup);
        });
    }

    /// Passes a stream on, and keeps it when it is whole.
    async fn pump(
        self: &Arc<Self>,
        address: &str,
        holder: u64,
        mut stored: Stored,
        mut chunks: mpsc::Receiver<Result<Vec<u8>, ()>>,
        tell: mpsc::Sender<Result<Vec<u8>, ()>>,
    ) {
        let mut body = Vec::new();
        let mut ended = Ok(());
        while let Some(chunk) = chunks.recv().await {
            match chunk {
                Ok(chunk) => {
                    body.extend_from_slice(&chunk);
                    // Who has left needs no more of it; the record does.
                    let _ = tell.send(Ok(chunk)).await;
                }
                Err(()) => {
                    ended = Err(());
                    break;
                }
            }
        }
        if self.setup.is(Fault::ReplaysFramedTwice) {
            stored.fields.push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
        }
        let is_kept = ended.is_ok() || self.setup.is(Fault::BrokenAnswersKept);
        let stored = is_kept.then(|| Stored { body: kept(body), ..stored });
        self.end(address, holder, stored).await;
        if ended.is_err() {
            let _ = tell.send(Err(())).await;
        }
    }
}

fn kept(body: Vec<u8>) -> Option<Vec<u8>> {
    (body.len() <= LIMIT).then_some(body)
}

async fn collected(mut chunks: mpsc::Receiver<Result<Vec<u8>, ()>>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        body.extend(chunk.ok()?);
    }
    Some(body)
}
