//! The middleware on apps: around scopes and resources, with the extractors behind it, and whatever stays on one thread.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use actix_web::{
    App, Error, HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody, to_bytes},
    dev::{Service, ServiceRequest, ServiceResponse},
    error::{ErrorConflict, ErrorInternalServerError, ErrorUnauthorized},
    http::StatusCode,
    middleware::{Next, from_fn},
    test::{TestRequest, init_service},
    web,
};
use idempotency_actix::{
    Attempt, Contract, Early, Ending, Idempotency, IdempotencyKey, OnServerError, Policy, Scope, Verdict,
};
use idempotency_store_memory::MemoryStore;

fn idempotency() -> Idempotency<MemoryStore> {
    Idempotency::new(MemoryStore::new())
}

fn keyed(path: &str, body: &'static str) -> TestRequest {
    TestRequest::post().uri(path).insert_header(("idempotency-key", "k")).set_payload(body)
}

fn json(path: &str, body: &'static str) -> TestRequest {
    keyed(path, body).insert_header(("content-type", "application/json"))
}

async fn send<A, B>(app: &A, request: TestRequest) -> (u16, bool, String)
where
    A: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    // An error that is left over is what actix's server answers with.
    match app.call(request.to_request()).await {
        Ok(response) => read(response.into_parts().1).await,
        Err(error) => read(error.error_response()).await,
    }
}

async fn read<B: MessageBody>(response: HttpResponse<B>) -> (u16, bool, String) {
    let status = response.status().as_u16();
    let replayed = response.headers().contains_key("idempotency-replayed");
    let body = to_bytes(response.into_body()).await.map_err(Into::into).unwrap();
    (status, replayed, String::from_utf8(body.to_vec()).unwrap())
}

#[actix_web::test]
async fn a_handler_that_holds_an_rc_runs_once() {
    let runs = Rc::new(Cell::new(0));
    let handler = {
        let runs = Rc::clone(&runs);
        move |body: String| {
            let runs = Rc::clone(&runs);
            async move {
                let held = Rc::new(Cell::new(0));
                actix_web::rt::task::yield_now().await;
                held.set(runs.get() + 1);
                runs.set(held.get());
                format!("{body} {}", held.get())
            }
        }
    };
    let app = App::new().wrap(idempotency()).route("/orders", web::post().to(handler));
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/orders", "tea")).await, (200, false, "tea 1".into()));
    assert_eq!(send(&app, keyed("/orders", "tea")).await, (200, true, "tea 1".into()));
    assert_eq!(send(&app, keyed("/orders", "milk")).await.0, 422);
    assert_eq!(runs.get(), 1);
    assert_eq!(send(&app, TestRequest::post().uri("/orders").set_payload("a")).await.2, "a 2");
    assert_eq!(send(&app, TestRequest::post().uri("/orders").set_payload("a")).await.2, "a 3");
}

#[actix_web::test]
async fn one_middleware_in_two_scopes_never_answers_for_the_other() {
    let idempotency = idempotency();
    let part = |scope: &'static str, answer: &'static str| {
        web::scope(scope)
            .wrap(idempotency.clone())
            .route("/create", web::post().to(move || async move { answer }))
    };
    let app = App::new().service(part("/orders", "order 1")).service(part("/refunds", "refund 1"));
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/orders/create", "{}")).await, (200, false, "order 1".into()));
    let (status, _, problem) = send(&app, keyed("/refunds/create", "{}")).await;
    assert_eq!(status, 422);
    assert!(problem.contains("\"path\"") && !problem.contains("order 1"), "{problem}");
    assert_eq!(send(&app, keyed("/orders/create", "{}")).await, (200, true, "order 1".into()));
}

#[actix_web::test]
async fn the_same_route_is_the_same_operation_wherever_the_middleware_stands() {
    let idempotency = idempotency();
    let runs = web::Data::new(AtomicUsize::new(0));
    let handler = async |runs: web::Data<AtomicUsize>| runs.fetch_add(1, Ordering::SeqCst).to_string();
    let on_a_resource = App::new().app_data(runs.clone()).service(
        web::scope("/a/{b}")
            .service(web::resource("/c").wrap(idempotency.clone()).route(web::post().to(handler))),
    );
    let on_the_app = App::new().app_data(runs).wrap(idempotency).route("/a/{b}/c", web::post().to(handler));
    let inside = init_service(on_a_resource).await;
    let outside = init_service(on_the_app).await;
    assert_eq!(send(&inside, keyed("/a/1/c", "")).await, (200, false, "0".into()));
    assert_eq!(send(&outside, keyed("/a/1/c", "")).await, (200, true, "0".into()));
    assert_eq!(send(&outside, keyed("/a/2/c", "")).await.0, 422);
}

#[actix_web::test]
async fn scopes_and_resources_have_policies_of_their_own() {
    let idempotency = idempotency();
    let required = idempotency.under(Policy::builder().required().build().unwrap());
    let done = || async { "done" };
    let app = App::new()
        .service(web::resource("/refunds").wrap(required).route(web::post().to(done)))
        .service(web::scope("/posts").wrap(idempotency).route("/comments", web::post().to(done)));
    let app = init_service(app).await;
    let unkeyed = |path: &str| TestRequest::post().uri(path);
    let (status, _, problem) = send(&app, unkeyed("/refunds")).await;
    assert!(status == 400 && problem.contains("missing-key"), "{problem}");
    assert_eq!(send(&app, unkeyed("/posts/comments")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/posts/comments", "")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/refunds", "")).await.0, 422, "one engine has one key space");
}

#[actix_web::test]
async fn two_middlewares_around_one_route_guard_it_once() {
    let app = App::new()
        .wrap(idempotency())
        .wrap(idempotency())
        .route("/", web::post().to(|body: String| async move { body }));
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/", "done")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/", "done")).await, (200, true, "done".into()));
    let idempotency = idempotency();
    let app = App::new().wrap(idempotency.clone()).service(
        web::resource("/").wrap(idempotency).route(web::post().to(|body: String| async move { body })),
    );
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/", "done")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/", "done")).await, (200, true, "done".into()));
}

#[actix_web::test]
async fn extractors_tell_the_attempt_where_there_is_one() {
    let handler = async |attempt: Option<Attempt>, key: Option<IdempotencyKey>| match (attempt, key) {
        (Some(attempt), Some(IdempotencyKey(key))) => {
            assert_eq!(attempt.key(), &key);
            format!("{} run {}", key.as_str(), attempt.number())
        }
        _ => "unguarded".to_owned(),
    };
    let required = async |attempt: Attempt, IdempotencyKey(_): IdempotencyKey| attempt.fence().to_string();
    let routes = |config: &mut web::ServiceConfig| {
        config.route("/", web::post().to(handler)).route("/required", web::post().to(required));
    };
    let app = init_service(App::new().wrap(idempotency()).configure(routes)).await;
    assert_eq!(send(&app, keyed("/", "")).await.2, "k run 1");
    let unkeyed = |path: &str| TestRequest::post().uri(path);
    assert_eq!(send(&app, unkeyed("/")).await.2, "unguarded");
    let (status, _, problem) = send(&app, unkeyed("/required")).await;
    assert!(status == 400 && problem.contains("missing-key"), "{problem}");
    let without = init_service(App::new().configure(routes)).await;
    let (status, _, problem) = send(&without, keyed("/required", "")).await;
    assert!(status == 500 && problem.contains("configuration-error"), "{problem}");
}

#[actix_web::test]
async fn an_early_rejection_frees_the_key_and_a_plain_one_is_kept() {
    let plain = async |_: web::Json<Vec<u32>>| "done";
    let early =
        async |Early(_): Early<web::Query<Vec<(String, u32)>>>, Early(_): Early<web::Json<Vec<u32>>>| "done";
    let routes = |config: &mut web::ServiceConfig| {
        config.route("/plain", web::post().to(plain)).route("/early", web::post().to(early));
    };
    let plain = init_service(App::new().wrap(idempotency()).configure(routes)).await;
    assert_eq!(send(&plain, json("/plain", "[oops")).await.0, 400);
    assert_eq!(send(&plain, json("/plain", "[1]")).await.0, 422, "it cannot know that nothing ran");
    let early = init_service(App::new().wrap(idempotency()).configure(routes)).await;
    assert_eq!(send(&early, json("/early?n=x", "[1]")).await.0, 400);
    assert_eq!(send(&early, json("/early", "[oops")).await.0, 400);
    assert_eq!(send(&early, json("/early", "[1]")).await, (200, false, "done".into()));
    assert_eq!(send(&early, json("/early", "[1]")).await, (200, true, "done".into()));
}

#[actix_web::test]
async fn a_handler_says_its_ending_by_an_extension() {
    let handler = || async {
        let mut response = HttpResponse::Conflict().body("sold out");
        response.extensions_mut().insert(Ending::NotExecuted);
        response
    };
    let app = App::new().wrap(idempotency()).route("/", web::post().to(handler));
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/", "a")).await, (409, false, "sold out".into()));
    assert_eq!(send(&app, keyed("/", "b")).await, (409, false, "sold out".into()));
}

#[actix_web::test]
async fn an_error_is_the_answer_that_actix_makes_of_it() {
    let runs = Arc::new(AtomicUsize::new(0));
    let fails = {
        let runs = Arc::clone(&runs);
        move |request: ServiceRequest, _: Next<BoxBody>| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            let failed: Result<ServiceResponse, Error> = Err(match request.path() {
                "/conflict" => ErrorConflict(format!("sold out {run}")),
                "/unauthorized" => ErrorUnauthorized(format!("who are you {run}")),
                _ => ErrorInternalServerError(format!("oops {run}")),
            });
            async move { failed }
        }
    };
    let held = Policy::builder().on_server_error(OnServerError::Hold).build().unwrap();
    let app = App::new()
        .wrap(from_fn(fails))
        .wrap(Idempotency::with_policy(MemoryStore::new(), held))
        .default_service(web::to(HttpResponse::Ok));
    let app = init_service(app).await;
    assert_eq!(send(&app, keyed("/conflict", "")).await, (409, false, "sold out 0".into()));
    assert_eq!(send(&app, keyed("/conflict", "")).await, (409, true, "sold out 0".into()));
    let other =
        |path: &str, key: &'static str| TestRequest::post().uri(path).insert_header(("idempotency-key", key));
    assert_eq!(send(&app, other("/unauthorized", "u")).await, (401, false, "who are you 1".into()));
    assert_eq!(send(&app, other("/unauthorized", "u")).await, (401, false, "who are you 2".into()));
    assert_eq!(send(&app, other("/", "e")).await, (500, false, "oops 3".into()));
    let (status, _, problem) = send(&app, other("/", "e")).await;
    assert!(status == 409 && problem.contains("outcome-unknown"), "{problem}");
}

#[actix_web::test]
async fn a_panic_is_caught_and_frees_the_key() {
    let runs = web::Data::new(AtomicUsize::new(0));
    let handler = async |runs: web::Data<AtomicUsize>| {
        assert!(runs.fetch_add(1, Ordering::SeqCst) > 0, "the first run panics");
        "done"
    };
    let app = App::new().app_data(runs).wrap(idempotency()).route("/", web::post().to(handler));
    let app = init_service(app).await;
    let (status, _, problem) = send(&app, keyed("/", "")).await;
    assert!(status == 500 && problem.contains("\"internal\""), "{problem}");
    assert_eq!(send(&app, keyed("/", "")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/", "")).await, (200, true, "done".into()));
}

#[derive(Clone)]
struct User(&'static str);

#[actix_web::test]
async fn a_scope_reads_what_a_middleware_outside_verified() {
    let per_user = Policy::builder()
        .scope(|parts| parts.extensions.get::<User>().map(|user| Scope::principal(user.0)))
        .build()
        .unwrap();
    let idempotency = Idempotency::with_policy(MemoryStore::new(), per_user).showing::<User>();
    let runs = web::Data::new(AtomicUsize::new(0));
    let handler = async |runs: web::Data<AtomicUsize>| runs.fetch_add(1, Ordering::SeqCst).to_string();
    let app = App::new()
        .app_data(runs)
        .wrap(idempotency)
        .wrap(from_fn(async |request: ServiceRequest, next: Next<_>| {
            match request.headers().get("x-user").map(|user| user.as_bytes().to_owned()).as_deref() {
                Some(b"ann") => drop(request.extensions_mut().insert(User("ann"))),
                Some(b"bob") => drop(request.extensions_mut().insert(User("bob"))),
                _ => {}
            }
            next.call(request).await
        }))
        .route("/", web::post().to(handler));
    let app = init_service(app).await;
    let of = |user: &'static str| keyed("/", "").insert_header(("x-user", user));
    assert_eq!(send(&app, of("ann")).await, (200, false, "0".into()));
    assert_eq!(send(&app, of("bob")).await, (200, false, "1".into()));
    assert_eq!(send(&app, of("ann")).await, (200, true, "0".into()));
    let (status, _, problem) = send(&app, keyed("/", "")).await;
    assert!(status == 403 && problem.contains("missing-principal"), "{problem}");
}

#[derive(Debug, PartialEq, Eq)]
struct Seal(u32);

#[actix_web::test]
async fn middlewares_around_see_the_verdict_and_what_the_handler_left_for_them() {
    let handler = || async {
        let mut response = HttpResponse::Created().body("done");
        response.extensions_mut().insert(Seal(7));
        response
    };
    let app = App::new().wrap(idempotency()).route("/", web::post().to(handler));
    let app = init_service(app).await;
    let first = app.call(keyed("/", "").to_request()).await.unwrap();
    assert_eq!(first.status(), StatusCode::CREATED);
    assert_eq!(first.response().extensions().get(), Some(&Seal(7)));
    assert!(matches!(first.response().extensions().get(), Some(Verdict::Ran { attempt: 1, .. })));
    let replay = app.call(keyed("/", "").to_request()).await.unwrap();
    assert_eq!(replay.status(), StatusCode::CREATED);
    assert_eq!(replay.response().extensions().get(), Some(&Verdict::Replayed));
    assert_eq!(replay.response().extensions().get::<Seal>(), None);
}

#[actix_web::test]
async fn keyed_reads_pass_untouched() {
    let runs = web::Data::new(AtomicUsize::new(0));
    let handler = async |runs: web::Data<AtomicUsize>| runs.fetch_add(1, Ordering::SeqCst).to_string();
    let app = App::new()
        .app_data(runs)
        .wrap(idempotency())
        .service(web::resource("/").route(web::get().to(handler)).route(web::head().to(handler)));
    let app = init_service(app).await;
    let keyed = |request: TestRequest| request.insert_header(("idempotency-key", "k"));
    assert_eq!(send(&app, keyed(TestRequest::get())).await, (200, false, "0".into()));
    assert_eq!(send(&app, keyed(TestRequest::get())).await, (200, false, "1".into()));
    let head = TestRequest::with_uri("/").method(actix_web::http::Method::HEAD);
    assert_eq!(send(&app, keyed(head)).await.0, 200);
}

#[actix_web::test]
async fn a_contract_is_served_as_json() {
    let idempotency = idempotency();
    let contract = Contract::new().route("/orders", &idempotency);
    let app = init_service(App::new().service(contract)).await;
    let (status, _, document) = send(&app, TestRequest::with_uri(Contract::WELL_KNOWN)).await;
    assert_eq!(status, 200);
    assert!(document.contains("\"path\":\"/orders\""), "{document}");
}
