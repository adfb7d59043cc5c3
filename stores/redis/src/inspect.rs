//! What an operator sees and does.
//!
//! Servers keep no order of keys, so a listing walks over all of them and keeps the first addresses it is asked for: as
//! many as fit a page, however many there are.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use idempotency_core::{
    Address, Fence, Holder, Inspect, Record, Resolution, Select, Settled, StoreError, StoreErrorKind, machine,
};
use redis::{Cmd, Value, cmd, from_redis_value};

use crate::{
    RedisStore,
    answer::Answer,
    error::StrangeAnswer,
    link::{Copies, Place},
    record::{removable, words_of_an_outcome},
    script,
    store::check_size,
};

/// How many keys one step of a walk looks at: few enough that nobody waits long for it.
const STEP: u32 = 500;

/// How many records are read at once.
const AT_ONCE: usize = 32;

/// Where a walk starts, and where it has come when it is over.
const START: &str = "0";

impl Inspect for RedisStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        Ok(self.stands(address).await?.record(address)?)
    }

    /// Walks over all keys of the database, in a cluster those of all its nodes, and reads the records of a page one by
    /// one; a listing of those in doubt reads the beginning of each record. Fails as
    /// [`Corrupt`](StoreErrorKind::Corrupt) where the page holds a record that cannot be read: leaving it out would hide
    /// it. Its source, a [`CorruptRecord`](idempotency_core::CorruptRecord), names the address to go on after.
    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let at_most = usize::try_from(at_most).unwrap_or(usize::MAX);
        let mut page = Vec::new();
        let mut after = after.copied();
        while page.len() < at_most {
            let addresses = self.addresses(select, after, at_most - page.len()).await?;
            let Some(last) = addresses.last() else { break };
            after = Some(*last);
            let records = stream::iter(addresses).map(|address| self.selected(select, address));
            let records: Vec<_> = records.buffered(AT_ONCE).try_collect().await?;
            page.extend(records.into_iter().flatten());
        }
        Ok(page)
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let fence_word = fence.as_u64().to_string();
        let applied = match resolution {
            Resolution::Applied(outcome, keep) => {
                check_size(outcome)?;
                let removable = removable(keep.replay, keep.then_reject);
                Some((outcome, words_of_an_outcome(outcome, *keep), removable))
            }
            Resolution::NotApplied => None,
        };
        let size = applied.as_ref().map_or(64, |(outcome, ..)| outcome.bytes.len() + 128);
        let arguments = |command: &mut Cmd| {
            command.arg(&fence_word);
            if let Some((outcome, words, removable)) = &applied {
                command.arg(Holder::RESOLVED.as_bytes()).arg(words).arg(&outcome.bytes[..]).arg(removable);
            }
        };
        // A copy would be told that there is nothing left to resolve.
        let answer = self.run(&script::RESOLVE, address, Copies::Misunderstood, size, arguments).await;
        self.bells.ring(address);
        let law = |record: Option<&_>, now| machine::resolve(record, fence, resolution, now);
        Answer::read(answer?)?.settle(address, law)
    }
}

impl RedisStore {
    /// The first addresses after the one given at which a record may be selected.
    async fn addresses(
        &self,
        select: Select,
        after: Option<Address>,
        at_most: usize,
    ) -> Result<BTreeSet<Address>, StoreError> {
        let mut first = BTreeSet::new();
        for place in self.link.nodes().await? {
            let mut cursor = START.to_owned();
            loop {
                let keys;
                (cursor, keys) = self.step(&place, &cursor).await?;
                let wanted: Vec<Address> = keys
                    .iter()
                    .filter_map(|key| self.keys.address(key))
                    .filter(|address| after.is_none_or(|after| *address > after))
                    .filter(|address| {
                        first.len() < at_most || first.last().is_some_and(|last| address < last)
                    })
                    .collect();
                let wanted = stream::iter(wanted).map(|address| self.may_be(select, address));
                let found: Vec<_> = wanted.buffered(AT_ONCE).try_collect().await?;
                first.extend(found.into_iter().flatten());
                while first.len() > at_most {
                    first.pop_last();
                }
                if cursor == START {
                    break;
                }
            }
        }
        Ok(first)
    }

    /// One step of a walk over a server's keys: where to go on, and the keys.
    async fn step(&self, place: &Place, cursor: &str) -> Result<(String, Vec<Vec<u8>>), StoreError> {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(self.keys.pattern()).arg("COUNT").arg(STEP);
        let answer = self.link.ask_at(place, &scan).await?;
        from_redis_value(answer).map_err(|_| StrangeAnswer.into())
    }

    /// The address, if the record there may be selected. One that is completed or released is seen from its first words,
    /// without its outcome.
    async fn may_be(&self, select: Select, address: Address) -> Result<Option<Address>, StoreError> {
        if select == Select::All {
            return Ok(Some(address));
        }
        let key = self.keys.of(&address);
        let first_words = |_| {
            let mut command = cmd("GETRANGE");
            command.arg(&key).arg(0).arg(3);
            command
        };
        match self.link.ask(Copies::Welcome, first_words).await {
            Ok(Value::BulkString(words)) if matches!(&words[..], b"1 2 " | b"1 3 ") => Ok(None),
            Ok(_) => match self.selected(select, address).await {
                Ok(found) => Ok(found.map(|_| address)),
                Err(error) if error.kind == StoreErrorKind::Corrupt => Ok(Some(address)),
                Err(error) => Err(error),
            },
            Err(failure) => match failure.at(&address) {
                error if error.kind == StoreErrorKind::Corrupt => Ok(Some(address)),
                error => Err(error),
            },
        }
    }

    /// The record at an address, if there is one that is selected.
    async fn selected(
        &self,
        select: Select,
        address: Address,
    ) -> Result<Option<(Address, Record)>, StoreError> {
        let standing = self.stands(&address).await?;
        let now = standing.now;
        let record = standing.record(&address)?;
        let is_selected = |record: &Record| select == Select::All || machine::is_in_doubt(record, now);
        Ok(record.filter(is_selected).map(|record| (address, record)))
    }
}
