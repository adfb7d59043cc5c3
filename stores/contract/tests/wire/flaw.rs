//! What can be wrong with a store on a network.

/// What is wrong with a store, or at least different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// No flaw: a call that fails is tried once more on another connection, in the name of the same holder.
    TriesAgain,
    TriesAgainAsAnother,
    /// Every failure is said to have left nothing behind.
    CallsFailuresUndone,
    /// An ending that failed is said to have counted.
    EndsInAnyCase,
    /// A claim whose reply began is taken for granted.
    BelievesHalfAReply,
    /// A bid whose grant was never seen cannot be released.
    ReleasesByTheFence,
    /// A completion that is sent again is fenced off by the first.
    CompletesOnce,
    RenewsNothing,
    /// The thread waits for a server that does not answer, and everybody else on it.
    BlocksInSilence,
    KeepsBrokenConnections,
    KeepsSilentConnections,
    /// A call is given up after a few milliseconds.
    HasNoPatience,
    /// The connection of a dropped call goes back as it is, an answer on its way in it.
    ReusesDroppedConnections,
    /// The connection of a dropped call stays open, and what was begun on it too.
    LeavesTransactionsOpen,
}
