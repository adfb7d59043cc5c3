//! Records, and the one place where a claim is decided.

use std::collections::HashMap;

use tokio::time::Instant;

use super::{
    Setup,
    fault::Fault,
    http::{Body, Reply},
};

/// What an answer leaves behind.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// None: it was too large.
    pub(crate) body: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) fingerprint: String,
    claimed: Instant,
    phase: Phase,
}

#[derive(Debug, Clone)]
enum Phase {
    /// None: it never lapses.
    Running {
        holder: u64,
        until: Option<Instant>,
    },
    Completed {
        stored: Stored,
        gone: Option<Instant>,
    },
}

/// What a claim is told.
#[derive(Debug)]
pub(crate) enum Told {
    Run(u64),
    Replay(Stored),
    Conflict,
    Mismatch,
    Doubt,
}

#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) all: HashMap<String, Record>,
    holders: u64,
}

impl Records {
    /// What stands there, if it still counts.
    fn standing(&self, address: &str, setup: &Setup) -> Option<&Record> {
        let now = Instant::now();
        let record = self.all.get(address)?;
        let is_free = match &record.phase {
            Phase::Running { .. } if setup.is(Fault::RetentionEndsClaims) => {
                record.claimed + setup.ttl <= now
            }
            Phase::Running { .. } if setup.holds_doubt && !setup.is(Fault::DoubtTakenOver) => false,
            Phase::Running { until, .. } => until.is_some_and(|until| until <= now),
            Phase::Completed { gone, .. } => gone.is_some_and(|gone| gone <= now),
        };
        (!is_free).then_some(record)
    }

    /// What a claim would be told. None: it would be granted.
    pub(crate) fn look(&mut self, address: &str, fingerprint: &str, setup: &Setup) -> Option<Told> {
        let record = self.standing(address, setup)?.clone();
        if record.fingerprint != fingerprint && !setup.is(Fault::PayloadIgnored) {
            let is_running = matches!(record.phase, Phase::Running { .. });
            if is_running && setup.is(Fault::MismatchInFlightIs409) {
                return Some(Told::Conflict);
            }
            if setup.is(Fault::MismatchOverwrites) {
                self.all.get_mut(address)?.fingerprint = fingerprint.to_owned();
            }
            if setup.is(Fault::RefusesAMismatchOnce) {
                self.all.remove(address);
            }
            return Some(Told::Mismatch);
        }
        match record.phase {
            Phase::Running { .. } if setup.is(Fault::CopiesRunBeside) => None,
            Phase::Running { until: Some(until), .. }
                if until <= Instant::now() && !setup.is(Fault::DoubtToldAsAConflict) =>
            {
                Some(Told::Doubt)
            }
            Phase::Running { .. } => {
                if setup.is(Fault::ConflictsStored) {
                    let conflict = Reply::new(409, "text/plain", "still running");
                    let stored = Stored { status: 409, fields: conflict.fields, body: Some(Vec::new()) };
                    self.all.get_mut(address)?.phase = Phase::Completed { stored, gone: None };
                }
                Some(Told::Conflict)
            }
            Phase::Completed { stored, .. } => {
                if setup.is(Fault::ReplaysExtendRetention) {
                    let gone = Some(Instant::now() + setup.ttl);
                    self.all.get_mut(address)?.phase = Phase::Completed { stored: stored.clone(), gone };
                }
                Some(Told::Replay(stored))
            }
        }
    }

    pub(crate) fn grant(&mut self, address: &str, fingerprint: &str, setup: &Setup) -> u64 {
        self.holders += 1;
        let phase = Phase::Running { holder: self.holders, until: Some(Instant::now() + setup.lease) };
        let record = Record { fingerprint: fingerprint.to_owned(), claimed: Instant::now(), phase };
        self.all.insert(address.to_owned(), record);
        self.holders
    }

    /// A claim that nobody holds and that never ends.
    pub(crate) fn strand(&mut self, address: &str) {
        let record = self.all.entry(address.to_owned()).or_insert_with(|| Record {
            fingerprint: String::new(),
            claimed: Instant::now(),
            phase: Phase::Running { holder: 0, until: None },
        });
        record.phase = Phase::Running { holder: 0, until: None };
    }

    fn is_held(&self, address: &str, by: u64) -> bool {
        let record = self.all.get(address);
        matches!(record, Some(Record { phase: Phase::Running { holder, .. }, .. }) if *holder == by)
    }

    pub(crate) fn renew(&mut self, address: &str, by: u64, setup: &Setup) {
        if self.is_held(address, by)
            && let Some(record) = self.all.get_mut(address)
        {
            record.phase = Phase::Running { holder: by, until: Some(Instant::now() + setup.lease) };
        }
    }

    /// Leaves a run as if it had died: nobody knows how it ended.
    pub(crate) fn lapse(&mut self, address: &str, by: u64) {
        if self.is_held(address, by)
            && let Some(record) = self.all.get_mut(address)
        {
            record.phase = Phase::Running { holder: by, until: Some(Instant::now()) };
        }
    }

    pub(crate) fn release(&mut self, address: &str, by: u64) {
        if self.is_held(address, by) {
            self.all.remove(address);
        }
    }

    /// Whether the ending counted.
    pub(crate) fn complete(&mut self, address: &str, by: u64, stored: Stored, setup: &Setup) -> bool {
        if !self.is_held(address, by) && !setup.is(Fault::LateEndingsOverwrite) {
            return false;
        }
        let Some(record) = self.all.get_mut(address) else { return false };
        let from = if setup.is(Fault::RetentionFromTheClaim) { record.claimed } else { Instant::now() };
        let gone = (!setup.is(Fault::NeverForgets)).then_some(from + setup.ttl);
        record.phase = Phase::Completed { stored, gone };
        true
    }

    /// What a new process finds.
    pub(crate) fn restart(&mut self, setup: &Setup) {
        if setup.is(Fault::ForgetsWhenKilled) {
            self.all.clear();
        }
        if setup.is(Fault::ClaimsFreedAtStart) {
            self.all.retain(|_, record| matches!(record.phase, Phase::Completed { .. }));
        }
        if setup.is(Fault::DeadClaimsStay) {
            for record in self.all.values_mut() {
                if let Phase::Running { until, .. } = &mut record.phase {
                    *until = None;
                }
            }
        }
    }
}

impl Stored {
    /// The answer of a replay.
    pub(crate) fn reply(self, setup: &Setup) -> Reply {
        let Self { mut status, mut fields, body } = self;
        let is_omitted = body.is_none();
        let mut body = body.unwrap_or_default();
        if setup.is(Fault::ReplaysAre200) {
            status = 200;
        }
        if setup.is(Fault::ReplaysWithoutFields) {
            fields.clear();
        }
        if setup.is(Fault::RepeatedFieldsLost) {
            let mut seen = Vec::new();
            fields.retain(|(name, _)| {
                let is_new = !seen.contains(name);
                seen.push(name.clone());
                is_new
            });
        }
        if setup.is(Fault::BodiesKeptAsText) {
            body = String::from_utf8_lossy(&body).into_owned().into_bytes();
        }
        if setup.is(Fault::BodilessWithABody) && matches!(status, 204 | 304) {
            fields.push(("Content-Length".to_owned(), b"2".to_vec()));
            body = b"{}".to_vec();
        }
        let mut reply = Reply { status, fields, body: Body::Whole(body), closes: false };
        if !setup.is(Fault::SetCookieReplayed) {
            reply = reply.without("set-cookie");
        }
        if setup.is(Fault::ContentEncodingLost) {
            reply = reply.without("content-encoding");
        }
        let is_secret = is_omitted && setup.is(Fault::OmitsWithoutAMark);
        if !is_secret && !setup.is(Fault::ReplaysUnmarked) {
            reply = reply.with("Idempotency-Replayed", "true");
        }
        if is_omitted && !is_secret {
            reply = reply.with("Idempotency-Replay", "omitted");
        }
        reply
    }
}
