use std::io;

use futures_util::{FutureExt, stream};
use http::HeaderMap;
use http_body_util::{Full, StreamBody};

use super::*;

type Frames = Vec<io::Result<Frame<Bytes>>>;

fn data(text: &'static str) -> io::Result<Frame<Bytes>> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

async fn frames<P: Body<Data = Bytes, Error = io::Error>>(body: PeekedBody<P>) -> Vec<String> {
    let mut body = Box::pin(body);
    let mut shown = Vec::new();
    while let Some(frame) = body.frame().await {
        shown.push(match frame {
            Ok(frame) => match frame.into_data() {
                Ok(data) => String::from_utf8(data.to_vec()).unwrap(),
                Err(_) => "trailers".into(),
            },
            Err(error) => error.to_string(),
        });
    }
    shown
}

async fn peeked(
    frames: Frames,
    limit: usize,
) -> (PeekedBody<impl Body<Data = Bytes, Error = io::Error>>, bool) {
    let (body, whole) = PeekedBody::peek(StreamBody::new(stream::iter(frames)), limit).await;
    (body, whole.is_some())
}

#[tokio::test]
async fn every_frame_that_was_read_is_given_on() {
    let whole = vec![data("abc"), data("def"), Ok(Frame::trailers(HeaderMap::new()))];
    let (body, is_whole) = peeked(whole, 6).await;
    assert!(is_whole);
    assert_eq!(frames(body).await, ["abc", "def", "trailers"]);
}

#[tokio::test]
async fn a_longer_body_is_not_read_to_its_end_and_nothing_of_it_is_lost() {
    let (body, is_whole) = peeked(vec![data("abc"), data("def"), data("ghi")], 5).await;
    assert!(!is_whole);
    assert_eq!(body.size_hint().lower(), 6, "the third frame was read");
    assert_eq!(frames(body).await, ["abc", "def", "ghi"]);
}

#[tokio::test]
async fn a_broken_body_breaks_off_where_it_did() {
    let (body, is_whole) = peeked(vec![data("abc"), Err(io::Error::other("cut"))], 5).await;
    assert!(!is_whole);
    assert_eq!(frames(body).await, ["abc", "cut"]);
}

#[test]
fn a_body_that_says_it_is_longer_is_not_read() {
    let (body, whole) = PeekedBody::peek(Full::from("abcdef"), 5).now_or_never().unwrap();
    assert_eq!((format!("{body:?}"), whole), ("PeekedBody(unread)".into(), None));
}

#[test]
fn the_size_stays_what_it_was() {
    let (body, whole) = PeekedBody::peek(Full::from("abcdef"), 6).now_or_never().unwrap();
    assert_eq!(whole.as_deref(), Some(&b"abcdef"[..]));
    assert_eq!(body.size_hint().exact(), Some(6));
    assert!(!body.is_end_stream());
}
