//! A small shop over gRPC: its messages, its service and a server for it, written by hand so that nothing has to be
//! generated.

use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use idempotency_store_memory::MemoryStore;
use idempotency_tonic::{Attempt, Ending, GrpcIdempotencyLayer, Policy, Store, with_ending};
use tokio::{
    net::TcpListener,
    sync::{Notify, Semaphore},
    time::timeout,
};
use tonic::{
    Code, Status, Streaming,
    body::Body,
    codec::CompressionEncoding,
    metadata::MetadataValue,
    server::NamedService,
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};
use tonic_prost::ProstCodec;
use tower_service::Service;

pub const PATIENCE: Duration = Duration::from_secs(20);

/// What is ordered; its item says what the handler does.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Order {
    #[prost(string, tag = "1")]
    pub item: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Receipt {
    #[prost(uint64, tag = "1")]
    pub run: u64,
    #[prost(string, tag = "2")]
    pub item: String,
}

pub fn order(item: &str) -> Order {
    Order { item: item.to_owned() }
}

/// What handlers and tests tell each other.
pub struct Site {
    runs: AtomicUsize,
    pub began: Notify,
    /// One run, or one more message of a stream, may go on.
    pub may_go_on: Semaphore,
}

impl Site {
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    fn begin(&self) -> u64 {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.began.notify_one();
        run as u64
    }

    async fn go_on(&self) {
        self.may_go_on.acquire().await.unwrap().forget();
    }
}

/// The service `shop.Orders`.
#[derive(Clone)]
pub struct Orders(Arc<Site>);

type Answer<T> = Result<tonic::Response<T>, Status>;

impl Orders {
    async fn create(self, request: tonic::Request<Order>) -> Answer<Receipt> {
        let attempt = request.extensions().get::<Attempt>().map(Attempt::number);
        let item = request.into_inner().item;
        let run = self.0.begin();
        match item.as_str() {
            "slow" => self.0.go_on().await,
            "unavailable once" if run == 1 => return Err(Status::unavailable("later")),
            "in doubt" => return Err(with_ending(Status::aborted("half way"), Ending::Unknown)),
            "panic" if run == 1 => panic!("the handler panics, as asked"),
            "nothing" => {
                let mut status =
                    Status::with_details(Code::NotFound, "no such item", Bytes::from_static(b"\x08\x05"));
                status.metadata_mut().insert("x-shelf", MetadataValue::from_static("7"));
                status
                    .metadata_mut()
                    .insert_bin("x-run-bin", MetadataValue::from_bytes(&[0, 255, run as u8]));
                return Err(status);
            }
            _ => {}
        }
        let mut response = tonic::Response::new(Receipt { run, item: item.clone() });
        let metadata = response.metadata_mut();
        metadata.insert_bin("x-run-bin", MetadataValue::from_bytes(&[0, 255, run as u8]));
        metadata.append_bin("x-run-bin", MetadataValue::from_bytes(b"again"));
        metadata.insert("x-attempt", attempt.unwrap_or_default().into());
        metadata.insert("idempotency-replayed", MetadataValue::from_static("true")); // not the handler's to say
        if item == "secret" {
            response.extensions_mut().insert(Ending::KeepHead);
        }
        Ok(response)
    }

    /// Three receipts; each waits until it may go. `unavailable once` ends the first run after the first, `in doubt` every.
    async fn watch(
        self,
        request: tonic::Request<Order>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<Receipt, Status>> + Send>>> {
        let item = request.into_inner().item;
        let run = self.0.begin();
        let receipts = stream::unfold(0, move |sent| {
            let (site, item) = (Arc::clone(&self.0), item.clone());
            async move {
                if sent == 3 {
                    return None;
                }
                if sent == 1 && run == 1 && item == "unavailable once" {
                    return Some((Err(Status::unavailable("later")), 3));
                }
                if sent == 1 && item == "in doubt" {
                    return Some((Err(with_ending(Status::internal("half way"), Ending::Unknown)), 3));
                }
                site.go_on().await;
                Some((Ok(Receipt { run, item: format!("{item} {sent}") }), sent + 1))
            }
        });
        Ok(tonic::Response::new(receipts.boxed()))
    }

    /// Client streaming: one receipt for all orders.
    async fn upload(self, request: tonic::Request<Streaming<Order>>) -> Answer<Receipt> {
        let run = self.0.begin();
        let mut orders = request.into_inner();
        let mut items = Vec::new();
        while let Some(order) = orders.message().await? {
            items.push(order.item);
        }
        Ok(tonic::Response::new(Receipt { run, item: items.join(",") }))
    }

    /// Both ways: each order has its receipt before the next is sent.
    async fn chat(
        self,
        request: tonic::Request<Streaming<Order>>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<Receipt, Status>> + Send>>> {
        let run = self.0.begin();
        let receipts =
            request.into_inner().map(move |order| order.map(|order| Receipt { run, item: order.item }));
        Ok(tonic::Response::new(receipts.boxed()))
    }
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

impl Service<Request<Body>> for Orders {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let orders = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Receipt, Order>::default())
                .accept_compressed(CompressionEncoding::Gzip);
            Ok(match request.uri().path() {
                "/shop.Orders/Create" => {
                    grpc.unary(Method(move |asked| orders.clone().create(asked)), request).await
                }
                "/shop.Orders/Watch" => {
                    grpc.server_streaming(Method(move |asked| orders.clone().watch(asked)), request).await
                }
                "/shop.Orders/Upload" => {
                    grpc.client_streaming(Method(move |asked| orders.clone().upload(asked)), request).await
                }
                "/shop.Orders/Chat" => {
                    grpc.streaming(Method(move |asked| orders.clone().chat(asked)), request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

/// A method of the service, as tonic's server calls it.
struct Method<F>(F);

impl<F, A, T, R> Service<tonic::Request<T>> for Method<F>
where
    F: FnMut(tonic::Request<T>) -> A,
    A: Future<Output = Answer<R>> + Send + 'static,
{
    type Response = tonic::Response<R>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Answer<R>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<T>) -> Self::Future {
        Box::pin((self.0)(request))
    }
}

/// A shop that is open.
pub struct Shop<S: Store = MemoryStore> {
    pub address: SocketAddr,
    pub site: Arc<Site>,
    pub layer: GrpcIdempotencyLayer<S>,
}

pub fn orders() -> (Orders, Arc<Site>) {
    let site =
        Arc::new(Site { runs: AtomicUsize::new(0), began: Notify::new(), may_go_on: Semaphore::new(0) });
    (Orders(Arc::clone(&site)), site)
}

pub async fn listen() -> (TcpIncoming, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (TcpIncoming::from(listener), address)
}

impl Shop {
    pub async fn open() -> Self {
        Self::under(Policy::default()).await
    }

    pub async fn under(policy: Policy) -> Self {
        Self::behind(GrpcIdempotencyLayer::with_policy(MemoryStore::new(), policy)).await
    }
}

impl<S: Store> Shop<S> {
    pub async fn behind(layer: GrpcIdempotencyLayer<S>) -> Self {
        let (incoming, address) = listen().await;
        let (orders, site) = orders();
        let server = Server::builder().layer(layer.clone()).add_service(orders).serve_with_incoming(incoming);
        tokio::spawn(server);
        Self { address, site, layer }
    }

    pub async fn client(&self) -> Client<Channel> {
        Client::new(channel(self.address).await)
    }

    pub async fn run_began(&self) {
        timeout(PATIENCE, self.site.began.notified()).await.expect("a run begins");
    }
}

pub async fn channel(address: SocketAddr) -> Channel {
    Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A client of the shop.
#[derive(Clone)]
pub struct Client<T> {
    grpc: tonic::client::Grpc<T>,
}

impl<T> Client<T>
where
    T: tonic::client::GrpcService<Body> + Clone,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<tonic::codegen::StdError> + Send,
    T::Error: Into<tonic::codegen::StdError>,
{
    pub fn new(service: T) -> Self {
        Self { grpc: tonic::client::Grpc::new(service) }
    }

    pub fn compressing(self) -> Self {
        Self { grpc: self.grpc.send_compressed(CompressionEncoding::Gzip) }
    }

    async fn ready(&mut self) {
        self.grpc.ready().await.map_err(Into::into).unwrap();
    }

    pub async fn create(&self, request: tonic::Request<Order>) -> Answer<Receipt> {
        let mut client = self.clone();
        client.ready().await;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Create");
        client.grpc.unary(request, path, ProstCodec::<Order, Receipt>::default()).await
    }

    pub async fn watch(&self, request: tonic::Request<Order>) -> Answer<Streaming<Receipt>> {
        let mut client = self.clone();
        client.ready().await;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Watch");
        client.grpc.server_streaming(request, path, ProstCodec::<Order, Receipt>::default()).await
    }

    pub async fn upload(
        &self,
        request: tonic::Request<impl Stream<Item = Order> + Send + 'static>,
    ) -> Answer<Receipt> {
        let mut client = self.clone();
        client.ready().await;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Upload");
        client.grpc.client_streaming(request, path, ProstCodec::<Order, Receipt>::default()).await
    }

    pub async fn chat(
        &self,
        request: tonic::Request<impl Stream<Item = Order> + Send + 'static>,
    ) -> Answer<Streaming<Receipt>> {
        let mut client = self.clone();
        client.ready().await;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Chat");
        client.grpc.streaming(request, path, ProstCodec::<Order, Receipt>::default()).await
    }
}

/// A call with the key `k`.
pub fn keyed<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("idempotency-key", MetadataValue::from_static("k"));
    request
}

pub fn is_replay(metadata: &tonic::metadata::MetadataMap) -> bool {
    metadata.get("idempotency-replayed").is_some_and(|marker| marker == "true")
}
