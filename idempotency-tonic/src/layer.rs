//! The layer, as tonic's servers take it.

use std::time::Duration;

use idempotency_tower::{Drained, IdempotencyLayer, Notify, Observer, Policy, Protocol, Store};
use tower_layer::Layer;

use crate::{
    ClientStreams, DescriptorError, GrpcIdempotencyService, ending::ending_in, message::meaning,
    methods::Methods, refusal::refusal_response,
};

/// Makes a tonic server answer the second copy of a keyed call with the first one's result.
///
/// It is tower's layer with gRPC's words: put it on with `Server::builder().layer(...)`. Clones share one engine: keep one
/// to [`drain`](Self::drain).
#[derive(Debug)]
pub struct GrpcIdempotencyLayer<S: Store> {
    layer: IdempotencyLayer<S>,
    methods: Methods,
}

const GRPC: Protocol = Protocol { refusal: refusal_response, meaning, ending: ending_in };

impl<S: Store> GrpcIdempotencyLayer<S> {
    /// A layer on `store` with the default [`Policy`].
    pub fn new(store: S) -> Self {
        Self::with_policy(store, Policy::default())
    }

    /// A layer on `store` that does what `policy` says. Its methods are HTTP's and its documents too: of `methods`,
    /// `render`, `problem_base`, `canonical_json` and `multipart_by_part` nothing is left here.
    pub fn with_policy(store: S, policy: Policy) -> Self {
        Self::from_layer(IdempotencyLayer::with_policy(store, policy.speaking(GRPC)))
    }

    /// The same, telling `observer` what happens to every operation.
    pub fn observed(store: S, policy: Policy, observer: impl Observer) -> Self {
        Self::from_layer(IdempotencyLayer::observed(store, policy.speaking(GRPC), observer))
    }

    fn from_layer(layer: IdempotencyLayer<S>) -> Self {
        Self { layer, methods: Methods::default() }
    }

    /// A layer on the same engine under another policy, for a service of its own. The bounds are the engine's.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        Self { layer: self.layer.under(policy.speaking(GRPC)), methods: self.methods.clone() }
    }

    /// Learns from a file descriptor set, as `protoc` and `tonic-prost-build` write it for reflection, which methods stream
    /// their requests, and which have no side effects (`option idempotency_level = NO_SIDE_EFFECTS`): those pass unguarded,
    /// so that their answers stay fresh.
    ///
    /// # Errors
    /// [`DescriptorError`]: the bytes are none.
    pub fn described_by(self, descriptors: &[u8]) -> Result<Self, DescriptorError> {
        Ok(Self { methods: self.methods.described_by(descriptors)?, ..self })
    }

    /// Says of a method, by its path (`/package.Service/Method`), that it streams its requests.
    #[must_use]
    pub fn streaming(self, path: &str) -> Self {
        Self { methods: self.methods.with_streaming(path), ..self }
    }

    /// Says of a method that it has no side effects: its calls pass unguarded.
    #[must_use]
    pub fn safe(self, path: &str) -> Self {
        Self { methods: self.methods.with_safe(path), ..self }
    }

    /// What becomes of keyed calls that stream their requests. [`ClientStreams::Pass`]. A method that nobody said this of is
    /// refused at its second message, or when it is still open 5 s after its first: nothing has run then.
    #[must_use]
    pub fn client_streams(self, client_streams: ClientStreams) -> Self {
        Self { methods: self.methods.client_streams(client_streams), ..self }
    }

    /// What it does.
    pub fn policy(&self) -> &Policy {
        self.layer.policy()
    }

    /// The same, its waiters woken by `notify` too: the store itself, where it can tell. Layers made by
    /// [`under`](Self::under) afterwards are woken as well.
    #[must_use]
    pub fn woken_by(self, notify: impl Notify) -> Self {
        Self { layer: self.layer.woken_by(notify), ..self }
    }

    /// How many copies wait for the answer of a running call.
    pub fn waiters(&self) -> usize {
        self.layer.waiters()
    }

    /// Waits for live runs and pending completions, at most `limit`: after the server's own graceful shutdown, before
    /// the runtime ends. What is left then lapses.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.layer.drain(limit).await
    }

    /// How many runs are live, those whose caller has left and pending completions included.
    pub fn live_runs(&self) -> usize {
        self.layer.live_runs()
    }
}

impl<S: Store> Clone for GrpcIdempotencyLayer<S> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), methods: self.methods.clone() }
    }
}

impl<I, S: Store> Layer<I> for GrpcIdempotencyLayer<S> {
    type Service = GrpcIdempotencyService<I, S>;

    fn layer(&self, inner: I) -> Self::Service {
        GrpcIdempotencyService::new(&self.layer, inner, self.methods.clone())
    }
}
