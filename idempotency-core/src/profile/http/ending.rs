//! How a run ended, by the handler's word or by its status.

/// How a run ended, as a door sees it. A handler may say it itself, in the response's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It happened, and every duplicate gets this answer.
    Keep,
    /// It happened, and only the head of the answer is kept: the body is not for storing.
    KeepHead,
    /// It did not happen: the key is free.
    NotExecuted,
    /// Nobody knows whether it happened: the operation is in doubt until somebody finds out.
    Unknown,
}

/// What a server error means for the key: a status of 500 or more, a panic, an error of the inner service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnServerError {
    /// The key is free and a retry runs again. The default, since most server errors come before the effect; an effect
    /// that came first happens twice.
    #[default]
    Release,
    /// The error is the answer, for every duplicate too.
    Keep,
    /// The operation is in doubt; nothing runs until somebody finds out how it ended. For money. A 408 counts as a server
    /// error here: a timeout that cut a handler off says it. The other statuses that free the key free it all the same.
    Hold,
}

impl OnServerError {
    /// The ending of a run that panicked, whose service failed, or that answered 500 or more.
    pub const fn ending(self) -> Ending {
        match self {
            Self::Release => Ending::NotExecuted,
            Self::Keep => Ending::Keep,
            Self::Hold => Ending::Unknown,
        }
    }
}

/// The ending of a run whose handler said nothing but `status`.
///
/// What routers, extractors and gates answer before a handler ran, and what is transient, frees the key; so does an
/// upgrade (101), whose connection no replay can give back. A handler that answers so after its effect happened must say
/// [`Ending::Keep`]. Under [`OnServerError::Hold`] a 408 is in doubt: a timeout inside the door cuts handlers off with it.
pub const fn ending_of(status: u16, on_server_error: OnServerError) -> Ending {
    match status {
        ..200 => Ending::NotExecuted,
        408 if matches!(on_server_error, OnServerError::Hold) => Ending::Unknown,
        401 | 403 | 405 | 407 | 408 | 411 | 413 | 415 | 421 | 423 | 425 | 426 | 428 | 429 | 431 => {
            Ending::NotExecuted
        }
        500.. => on_server_error.ending(),
        _ => Ending::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_end_as_the_table_says() {
        let freed = [401, 403, 405, 407, 411, 413, 415, 421, 423, 425, 426, 428, 429, 431];
        for status in 100..=999 {
            let expected = match status {
                100..200 => Ending::NotExecuted,
                408 | 500.. => Ending::Unknown,
                _ if freed.contains(&status) => Ending::NotExecuted,
                _ => Ending::Keep,
            };
            assert_eq!(ending_of(status, OnServerError::Hold), expected, "{status}");
        }
    }

    #[test]
    fn statuses_of_note_are_kept_or_freed() {
        for status in [200, 201, 204, 303, 304, 400, 402, 404, 409, 410, 412, 414, 422, 424, 451, 499] {
            assert_eq!(ending_of(status, OnServerError::Release), Ending::Keep, "{status}");
        }
        assert_eq!(ending_of(101, OnServerError::Keep), Ending::NotExecuted);
        assert_eq!(ending_of(408, OnServerError::Keep), Ending::NotExecuted);
        assert_eq!(ending_of(408, OnServerError::Release), Ending::NotExecuted);
    }

    #[test]
    fn server_errors_follow_the_policy() {
        for status in [500, 502, 503, 504, 599, 999] {
            assert_eq!(ending_of(status, OnServerError::default()), Ending::NotExecuted, "{status}");
            assert_eq!(ending_of(status, OnServerError::Keep), Ending::Keep, "{status}");
            assert_eq!(ending_of(status, OnServerError::Hold), Ending::Unknown, "{status}");
        }
    }
}
