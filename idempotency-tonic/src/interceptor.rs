//! Keys in metadata: what a client sends, and what a server without the layer can check.

use idempotency_tower::{Key, KeySyntax, Refusal, client::OperationKey};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
};

use crate::refusal_status;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A client's interceptor: gives every call a key, one for all its tries.
///
/// A call gets the key of the [`OperationKey`] in its extensions, else the key it has in its metadata, else a fresh random
/// one. What retries below it, in a tower layer or in the channel, sends the same key again; a program that calls again by
/// itself says by one `OperationKey` that it is the same call:
///
/// ```
/// use idempotency_tonic::{KeySender, OperationKey};
/// use tonic::{Request, service::Interceptor};
///
/// let key = OperationKey::random();
/// let mut call = Request::new("tea");
/// call.extensions_mut().insert(key.clone());
/// # let call = call.map(drop);
///
/// let sent = KeySender.call(call)?; // as a client made `with_interceptor(channel, KeySender)` does
/// assert!(sent.metadata().get("idempotency-key").is_some());
/// # Ok::<(), tonic::Status>(())
/// ```
///
/// It cannot see the message: that one operation key goes with one message is the caller's to keep, and a guarded server's
/// to refuse.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeySender;

impl Interceptor for KeySender {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let key = match request.extensions().get::<OperationKey>() {
            Some(operation) => operation.clone(),
            None if request.metadata().contains_key(IDEMPOTENCY_KEY) => return Ok(request),
            None => OperationKey::random(),
        };
        request.metadata_mut().insert(IDEMPOTENCY_KEY, written(key.key())?);
        Ok(request)
    }
}

/// As a quoted string, as the draft asks for; the value is marked sensitive.
fn written(key: &Key) -> Result<MetadataValue<Ascii>, Status> {
    let quoted = key.as_str().replace('\\', "\\\\").replace('"', "\\\"");
    let value = format!("\"{quoted}\"").parse::<MetadataValue<Ascii>>();
    let mut value = value.map_err(|_| Status::internal("the operation key cannot be sent as metadata"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A server's interceptor for a service that no layer guards: checks the key of every call and shows it to the handler
/// as [`IdempotencyKey`], in the request's extensions. It recognises no copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyCheck {
    syntax: KeySyntax,
    required: bool,
}

impl KeyCheck {
    /// Lets calls without a key pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses calls without a key, with `INVALID_ARGUMENT`.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Which spellings of a key are read. [`KeySyntax::Lenient`].
    #[must_use]
    pub const fn key_syntax(mut self, syntax: KeySyntax) -> Self {
        self.syntax = syntax;
        self
    }
}

impl Interceptor for KeyCheck {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let lines = request.metadata().get_all(IDEMPOTENCY_KEY);
        let refusal = match self.syntax.read(lines.iter().map(MetadataValue::as_encoded_bytes)) {
            Ok(Some(key)) => {
                request.extensions_mut().insert(IdempotencyKey(key));
                return Ok(request);
            }
            Ok(None) if self.required => Refusal::missing_key(IDEMPOTENCY_KEY),
            Ok(None) => return Ok(request),
            Err(rule) => Refusal::invalid_key(rule),
        };
        Err(refusal_status(&refusal))
    }
}

/// The caller's key, unquoted and unescaped, as [`KeyCheck`] read it. Do not log it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub Key);

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tonic_types::StatusExt;

    use super::*;

    fn checked(check: &mut KeyCheck, sent: Request<()>) -> Result<Option<Key>, Status> {
        let seen = check.call(sent)?;
        Ok(seen.extensions().get::<IdempotencyKey>().map(|key| key.0.clone()))
    }

    #[test]
    fn what_one_sends_the_other_reads() {
        for text in ["k", "a b, c", r#"say "tea""#, r"back\slash"] {
            let key = Key::new(text).unwrap();
            let mut call = Request::new(());
            call.extensions_mut().insert(OperationKey::from(key.clone()));
            let sent = KeySender.call(call).unwrap();
            assert_eq!(checked(&mut KeyCheck::new(), sent).unwrap(), Some(key), "{text}");
        }
    }

    #[test]
    fn a_call_keeps_the_key_it_has_and_gets_one_of_its_own_without() {
        let mut call = Request::new(());
        call.metadata_mut().insert(IDEMPOTENCY_KEY, "mine".parse().unwrap());
        let sent = KeySender.call(call).unwrap();
        assert_eq!(sent.metadata().get(IDEMPOTENCY_KEY).unwrap(), "mine");
        let fresh = || KeySender.call(Request::new(())).unwrap().metadata().get(IDEMPOTENCY_KEY).cloned();
        assert!(fresh().is_some() && fresh() != fresh());
    }

    #[test]
    fn a_key_that_is_missing_or_malformed_is_refused() {
        assert_eq!(checked(&mut KeyCheck::new(), Request::new(())).unwrap(), None);
        let missing = checked(&mut KeyCheck::new().required(), Request::new(())).unwrap_err();
        assert_eq!(missing.code(), Code::InvalidArgument);
        assert_eq!(missing.get_details_error_info().unwrap().reason, "MISSING_KEY");
        let mut call = Request::new(());
        call.metadata_mut().insert(IDEMPOTENCY_KEY, "\"open".parse().unwrap());
        let malformed = checked(&mut KeyCheck::new(), call).unwrap_err();
        assert_eq!(malformed.get_details_error_info().unwrap().reason, "INVALID_KEY");
    }
}
