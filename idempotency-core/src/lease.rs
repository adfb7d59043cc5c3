//! The time-bounded right to run, and what a claimer brings to get it.

use std::{
    cell::RefCell,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::Address;

/// Who bids: 128 random bits drawn before a claim is sent and sent again on every retry of that claim.
///
/// Endings compare the holder, so a completion can only land on the claim it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder([u8; 16]);

impl Holder {
    /// A holder no other claim has.
    ///
    /// # Panics
    /// When the operating system has no randomness to give, as the standard library's hash maps do.
    pub fn draw() -> Self {
        thread_local!(static RESERVE: RefCell<Reserve> = const { RefCell::new(Reserve::EMPTY) });
        let drawn = RESERVE.with_borrow_mut(Reserve::next);
        // A copy of this process and its memory, forked or started from a snapshot, has the same reserve: the time of a
        // draw tells their holders apart.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self((drawn ^ now.as_nanos()).to_le_bytes())
    }

    /// Whoever resolved an operation that was in doubt: no run's holder.
    pub const RESOLVED: Self = Self([0; 16]);

    /// A holder read back from a store.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes a store keeps.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Holder({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

/// Random numbers for a few holders: asking the operating system for each would cost a large share of a claim. It gives a
/// seed, which BLAKE3 stretches at a third of the price.
struct Reserve {
    bytes: [u8; 16 * Self::HOLDERS],
    left: usize,
}

impl Reserve {
    const HOLDERS: usize = 64;
    const EMPTY: Self = Self { bytes: [0; 16 * Self::HOLDERS], left: 0 };

    fn next(&mut self) -> u128 {
        if self.left == 0 {
            let mut seed = [0; blake3::KEY_LEN];
            getrandom::fill(&mut seed).expect("the operating system gives random bytes");
            blake3::Hasher::new_keyed(&seed).finalize_xof().fill(&mut self.bytes);
            self.left = Self::HOLDERS;
        }
        self.left -= 1;
        let (numbers, _) = self.bytes.as_chunks();
        u128::from_le_bytes(numbers[self.left])
    }
}

/// A number that rises with each grant of one address and never repeats, for code outside that must refuse a stale
/// writer. It is at least the store's clock in microseconds, so deleting a record lowers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(u64);

impl Fence {
    /// A fence read back from a store.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What becomes of a record whose lease lapsed without an ending. Written into the record at the claim; the
/// record's decides, never the reader's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnLapse {
    /// The next copy takes the key over and runs. The effect can happen twice.
    #[default]
    TakeOver,
    /// The record is in doubt until somebody resolves it. Nothing runs twice.
    Hold,
}

/// What a claimer brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bid {
    /// Who bids.
    pub holder: Holder,
    /// How long the grant lasts unless it is renewed.
    pub lease: Duration,
    /// How long a released or lapsed record is kept after its end, so that delayed copies of its claims are known.
    pub retention: Duration,
    /// What a lapse means for this record.
    pub on_lapse: OnLapse,
}

/// A granted right to run, as a store sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The record it stands on.
    pub address: Address,
    /// Whose it is.
    pub holder: Holder,
    /// The fence of the grant.
    pub fence: Fence,
    /// 1 for a first run; one more for each grant that took over a lapsed lease since then.
    pub attempt: u32,
}

impl Lease {
    /// The lease a bid would hold if its claim had been granted without the answer arriving: enough to release it,
    /// since stores compare the holder only.
    pub const fn unconfirmed(address: Address, holder: Holder) -> Self {
        Self { address, holder, fence: Fence(0), attempt: 0 }
    }

    /// Whether an earlier run of this operation lapsed and this one took its place.
    pub const fn is_takeover(&self) -> bool {
        self.attempt > 1
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_two_holders_are_alike_on_any_thread() {
        let draw = || (0..1_000).map(|_| Holder::draw()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(draw)).collect();
        let drawn: HashSet<Holder> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(drawn.len(), 4_000);
    }

    #[test]
    fn a_reserve_gives_each_number_once() {
        let mut reserve = Reserve::EMPTY;
        let drawn: HashSet<u128> = (0..10 * Reserve::HOLDERS).map(|_| reserve.next()).collect();
        assert_eq!(drawn.len(), 10 * Reserve::HOLDERS);
    }
}
