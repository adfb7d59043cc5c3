//! The service `bank.v1.Transfers`:
//!
//! ```proto
//! service Transfers { rpc Move(Transfer) returns (Receipt); }
//! message Transfer { string from = 1; string to = 2; uint64 cents = 3; }
//! message Receipt { uint64 number = 1; }
//! ```

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};

use http::uri::PathAndQuery;
use tonic::{
    Request, Response, Status,
    body::Body,
    client::GrpcService,
    codegen::{Body as HttpBody, Bytes, StdError},
    server::NamedService,
};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::bank::Bank;

const MOVE: &str = "/bank.v1.Transfers/Move";

/// What is to be moved.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Transfer {
    /// The account it is taken from.
    #[prost(string, tag = "1")]
    pub from: String,
    /// The account it goes to.
    #[prost(string, tag = "2")]
    pub to: String,
    /// How much.
    #[prost(uint64, tag = "3")]
    pub cents: u64,
}

/// That it was moved.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Receipt {
    /// The transfer's number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// The service.
#[derive(Debug, Clone)]
pub struct TransfersServer(Bank);

impl TransfersServer {
    /// The transfers of `bank`.
    pub const fn new(bank: Bank) -> Self {
        Self(bank)
    }
}

impl NamedService for TransfersServer {
    const NAME: &'static str = "bank.v1.Transfers";
}

impl Service<http::Request<Body>> for TransfersServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let bank = self.0.clone();
        Box::pin(async move {
            if request.uri().path() != MOVE {
                return Ok(Status::unimplemented("there is no such method").into_http());
            }
            Ok(tonic::server::Grpc::new(ProstCodec::default()).unary(Move(bank), request).await)
        })
    }
}

/// The method.
struct Move(Bank);

impl Service<Request<Transfer>> for Move {
    type Response = Response<Receipt>;
    type Error = Status;
    type Future = Ready<Result<Response<Receipt>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Transfer>) -> Self::Future {
        ready(self.0.transfer(request.get_ref()).map(Response::new))
    }
}

/// A client.
#[derive(Debug, Clone)]
pub struct TransfersClient<T>(tonic::client::Grpc<T>);

impl<T> TransfersClient<T>
where
    T: GrpcService<Body>,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    /// A client that sends its calls through `channel`.
    pub fn new(channel: T) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    /// Moves money.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn transfer(&mut self, transfer: Request<Transfer>) -> Result<Response<Receipt>, Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unavailable(format!("the channel: {}", error.into())))?;
        self.0.unary(transfer, PathAndQuery::from_static(MOVE), ProstCodec::default()).await
    }
}
