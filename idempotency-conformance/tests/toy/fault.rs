//! Everything that can be wrong with the toy server, one thing at a time.

macro_rules! faults {
    ($($fault:ident = $name:literal),* $(,)?) => {
        /// One thing that is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fault {
            $($fault),*
        }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[$(Self::$fault),*];

            /// As vectors name it.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name),*
                }
            }
        }
    };
}

faults! {
    ServerErrorsStored = "5xx-stored",
    AnswersBeforeItKeeps = "answers-before-it-keeps",
    BodiesKeptAsText = "bodies-kept-as-text",
    BodilessWithABody = "bodiless-with-a-body",
    BodyAloneInFingerprint = "body-alone-in-fingerprint",
    BrokenAnswersKept = "broken-answers-kept",
    CallersShareAnswers = "callers-share-answers",
    CallersShareKeys = "callers-share-keys",
    ClaimsBeforeTheBody = "claims-before-the-body",
    ClaimsFreedAtStart = "claims-freed-at-start",
    CompletesInTwoWrites = "completes-in-two-writes",
    ConflictsHoldALock = "conflicts-hold-a-lock",
    ConflictsStored = "conflicts-stored",
    ContentEncodingLost = "content-encoding-lost",
    ContentTypeNotCompared = "content-type-not-compared",
    CopiesRunBeside = "copies-run-beside",
    CorruptChunksAccepted = "corrupt-chunks-accepted",
    DeadClaimsStay = "dead-claims-stay",
    DoubtTakenOver = "doubt-taken-over",
    DoubtToldAsAConflict = "doubt-told-as-a-conflict",
    EmptyKeyAccepted = "empty-key-accepted",
    ErrorsNotStored = "errors-not-stored",
    EscapesDropped = "escapes-dropped",
    FieldNameCaseMatters = "field-name-case-matters",
    FirstAnswersAltered = "first-answers-altered",
    FirstAnswersMarked = "first-answers-marked",
    FirstKeyLineWins = "first-key-line-wins",
    ForgetsWhenKilled = "forgets-when-killed",
    FramingInFingerprint = "framing-in-fingerprint",
    GetGuarded = "get-guarded",
    HalfABodyAccepted = "half-a-body-accepted",
    KeyFreedWhenTheClientLeaves = "key-freed-when-the-client-leaves",
    KeyListsAccepted = "key-lists-accepted",
    KeyOptional = "key-optional",
    KeysFolded = "keys-folded",
    LateEndingsOverwrite = "late-endings-overwrite",
    LeasesNotRenewed = "leases-not-renewed",
    LongKeysCut = "long-keys-cut",
    MethodNotCompared = "method-not-compared",
    MismatchInFlightIs409 = "mismatch-in-flight-is-409",
    MismatchOverwrites = "mismatch-overwrites",
    NeverForgets = "never-forgets",
    NewerParametersRefused = "newer-parameters-refused",
    NewerUuidsRefused = "newer-uuids-refused",
    NonAsciiAccepted = "non-ascii-accepted",
    NothingStored = "nothing-stored",
    OmitsWithoutAMark = "omits-without-a-mark",
    OnlyUuidsAccepted = "only-uuids-accepted",
    OverLongKeysCut = "over-long-keys-cut",
    OversizedRequestsClaim = "oversized-requests-claim",
    RefusedBodiesAskedFor = "refused-bodies-asked-for",
    OversizedRequestsRead = "oversized-requests-read",
    OversizedResponsesRunAgain = "oversized-responses-run-again",
    PanicsCloseTheConnection = "panics-close-the-connection",
    PanicsKeepTheClaim = "panics-keep-the-claim",
    ParametersKept = "parameters-kept",
    PatchUnguarded = "patch-unguarded",
    PayloadIgnored = "payload-ignored",
    PayloadIsTheKey = "payload-is-the-key",
    ProblemsAreACodeOnly = "problems-are-a-code-only",
    PutAndDeleteGuarded = "put-and-delete-guarded",
    QuotesKept = "quotes-kept",
    QuotesRefused = "quotes-refused",
    ReadThenWrite = "read-then-write",
    RefusalsArePlainText = "refusals-are-plain-text",
    RefusalsCacheable = "refusals-cacheable",
    RefusalsWithoutACode = "refusals-without-a-code",
    RefusedBodiesLeft = "refused-bodies-left",
    RefusesAMismatchOnce = "refuses-a-mismatch-once",
    RepeatedFieldsLost = "repeated-fields-lost",
    ReplaysAre200 = "replays-are-200",
    ReplaysExtendRetention = "replays-extend-retention",
    ReplaysFramedTwice = "replays-framed-twice",
    ReplaysUnmarked = "replays-unmarked",
    ReplaysWithoutFields = "replays-without-fields",
    RetentionEndsClaims = "retention-ends-claims",
    RetentionFromTheClaim = "retention-from-the-claim",
    RetryAfterADay = "retry-after-a-day",
    RetryAfterMissing = "retry-after-missing",
    RetryAfterTwoLeases = "retry-after-two-leases",
    RouteNotCompared = "route-not-compared",
    RouterRefusalsStored = "router-refusals-stored",
    RunDiesWithItsClient = "run-dies-with-its-client",
    SetCookieReplayed = "set-cookie-replayed",
    StreamsWithheld = "streams-withheld",
    Transient4xxStored = "transient-4xx-stored",
    UnbalancedQuotesAccepted = "unbalanced-quotes-accepted",
}
