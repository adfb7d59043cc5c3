//! The way to a server or to a cluster of them, and what became of what was sent.
//!
//! Every transition may be repeated: a copy of it gets the first one's answer. So what met a dead connection, or a node
//! that is not in charge, is sent once more while there is time. What nobody answered may have happened all the same,
//! whatever a later copy met: from then on the fate of the call is unknown.

use std::{io, time::Duration};

use idempotency_core::Fate;
use redis::{Cmd, RedisError, Value};
use tokio::time::{error::Elapsed, timeout};

use crate::{
    error::{Failure, is_refusal, is_without_script},
    script::Name,
};

#[cfg(feature = "cluster")]
pub(crate) use cluster::Cluster;
pub(crate) use single::Single;

#[cfg(feature = "cluster")]
mod cluster;
mod single;

/// The way there.
#[derive(Debug)]
pub(crate) struct Link {
    wire: Wire,
    patience: Duration,
}

/// What is at the other end.
#[derive(Debug)]
pub(crate) enum Wire {
    Single(Box<Single>),
    #[cfg(feature = "cluster")]
    Cluster(Box<Cluster>),
}

/// Which server a command goes to.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// The only one, or in a cluster the one that holds the key.
    OfTheKey,
    /// The node of a cluster that this connection leads to.
    #[cfg(feature = "cluster")]
    Node(redis::aio::MultiplexedConnection),
    /// The node of a cluster that is about to get the key, and is told that this is known.
    #[cfg(feature = "cluster")]
    NextNode(redis::cluster::NodeAddress),
}

/// Whether a copy of a call gets the first one's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    Welcome,
    Misunderstood,
}

/// How far a call has come.
#[derive(Debug)]
struct Call {
    fate: Fate,
    /// The number of the connection that it is on.
    line: Option<u64>,
}

/// What to do about a copy that failed.
#[derive(Debug)]
enum Next {
    GiveUp,
    Again,
    #[cfg(feature = "cluster")]
    AgainAfter(Duration),
    #[cfg(feature = "cluster")]
    AgainAt(Place),
}

impl Link {
    pub(crate) const fn new(wire: Wire, patience: Duration) -> Self {
        Self { wire, patience }
    }

    /// Sends a command to the server of the key that it names.
    pub(crate) async fn ask(
        &self,
        copies: Copies,
        command: impl Fn(Name) -> Cmd + Sync,
    ) -> Result<Value, Failure> {
        let mut call = Call::new();
        let answer = timeout(self.patience, self.send_copies(copies, command, &mut call)).await;
        self.end(&call, answer)
    }

    /// Sends a command that changes nothing to a server.
    pub(crate) async fn ask_at(&self, place: &Place, command: &Cmd) -> Result<Value, Failure> {
        let mut call = Call::new();
        let answer = timeout(self.patience, self.wire.send(command, place, &mut call)).await;
        self.end(&call, answer)
    }

    /// The servers that hold records, each as a place.
    pub(crate) async fn nodes(&self) -> Result<Vec<Place>, Failure> {
        match &self.wire {
            Wire::Single(_) => Ok(vec![Place::OfTheKey]),
            #[cfg(feature = "cluster")]
            Wire::Cluster(cluster) => {
                let nodes = timeout(self.patience, cluster.nodes()).await;
                self.end(&Call::new(), nodes)
            }
        }
    }

    async fn send_copies(
        &self,
        copies: Copies,
        command: impl Fn(Name) -> Cmd + Sync,
        call: &mut Call,
    ) -> Result<Value, RedisError> {
        let (mut copy, mut name, mut place) = (1, Name::Digest, Place::OfTheKey);
        loop {
            let error = match self.wire.send(&command(name), &place, call).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if is_without_script(&error) && name == Name::Digest {
                name = Name::Source;
                continue;
            }
            if copies == Copies::Misunderstood && !is_refusal(&error) {
                return Err(error);
            }
            place = match self.wire.next(copy, call, &error) {
                Next::GiveUp => return Err(error),
                Next::Again => Place::OfTheKey,
                #[cfg(feature = "cluster")]
                Next::AgainAfter(pause) => {
                    tokio::time::sleep(pause).await;
                    Place::OfTheKey
                }
                #[cfg(feature = "cluster")]
                Next::AgainAt(place) => place,
            };
            copy += 1;
        }
    }

    fn end<T>(&self, call: &Call, answer: Result<Result<T, RedisError>, Elapsed>) -> Result<T, Failure> {
        let error = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(elapsed) => {
                self.wire.leave(call);
                late(elapsed)
            }
        };
        Err(Failure { error, fate: call.fate })
    }
}

impl Wire {
    async fn send(&self, command: &Cmd, place: &Place, call: &mut Call) -> Result<Value, RedisError> {
        match (self, place) {
            (Self::Single(single), _) => single.send(command, call).await,
            #[cfg(feature = "cluster")]
            (Self::Cluster(cluster), place) => cluster.send(command, place, call).await,
        }
    }

    fn next(&self, copy: u32, call: &Call, error: &RedisError) -> Next {
        match self {
            Self::Single(_) => Single::next(copy, call, error),
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => Cluster::next(copy, error),
        }
    }

    /// Leaves a connection on which nothing came in time.
    fn leave(&self, call: &Call) {
        if let (Self::Single(single), Some(line)) = (self, call.line) {
            single.leave(line);
        }
    }
}

fn late(elapsed: Elapsed) -> RedisError {
    io::Error::new(io::ErrorKind::TimedOut, elapsed).into()
}

impl Call {
    const fn new() -> Self {
        Self { fate: Fate::NotApplied, line: None }
    }

    /// Waits for the answer to a copy. What nobody answers may have happened.
    async fn await_answer(
        &mut self,
        sent: impl Future<Output = Result<Value, RedisError>>,
    ) -> Result<Value, RedisError> {
        let before = std::mem::replace(&mut self.fate, Fate::Unknown);
        let answer = sent.await.and_then(Value::extract_error);
        if answer.as_ref().is_err_and(is_refusal) {
            self.fate = before;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use redis::{ErrorKind, ServerErrorKind};

    use super::*;

    fn refused() -> Result<Value, RedisError> {
        Err((ErrorKind::Server(ServerErrorKind::ClusterDown), "it said").into())
    }

    fn lost() -> Result<Value, RedisError> {
        Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
    }

    #[tokio::test]
    async fn what_became_of_the_first_copy_is_not_forgotten_for_the_second() {
        for (copies, fate) in [
            (vec![refused()], Fate::NotApplied),
            (vec![refused(), refused()], Fate::NotApplied),
            (vec![lost()], Fate::Unknown),
            (vec![lost(), refused()], Fate::Unknown),
            (vec![refused(), lost(), refused(), refused()], Fate::Unknown),
        ] {
            let mut call = Call::new();
            for answer in copies {
                call.await_answer(ready(answer)).await.unwrap_err();
            }
            assert_eq!(call.fate, fate);
        }
    }

    /// A proxy that lost its server says so in words of its own.
    #[tokio::test]
    async fn what_somebody_else_says_in_the_server_s_place_refuses_nothing() {
        for (code, fate) in
            [("OOM", Fate::NotApplied), ("NOAUTH", Fate::NotApplied), ("upstream", Fate::Unknown)]
        {
            let mut call = Call::new();
            let said = redis::make_extension_error(code.to_owned(), Some("failure".to_owned()));
            let error = call.await_answer(ready(Err(said))).await.unwrap_err();
            assert_eq!(call.fate, fate, "{code}");
            assert_eq!(is_refusal(&error), fate == Fate::NotApplied, "{code}");
        }
    }

    #[tokio::test]
    async fn the_fate_of_a_call_that_is_cut_short_is_unknown() {
        let mut call = Call::new();
        let never = timeout(Duration::ZERO, call.await_answer(std::future::pending())).await;
        assert!(never.is_err());
        assert_eq!(call.fate, Fate::Unknown);
    }
}
