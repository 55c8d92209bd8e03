//! HTTP/3 with the crates h3 and h3-quinn.

use std::future::poll_fn;
use std::sync::Arc;

use airpath_quinn::Host;
use bytes::{Buf, Bytes};
use http::{Request, Response, StatusCode};

use super::{PORT, client_config, server_config};

/// A server that answers one request with 50,000 bytes.
pub async fn server(host: Arc<Host>) {
    let config = server_config(&mut host.identity());
    let endpoint = host.endpoint(PORT, Some(config)).expect("the port is free");
    let connection = endpoint.accept().await.expect("it is open").await.expect("the client connects");
    let mut connection = h3::server::builder()
        .send_grease(false)
        .build::<_, Bytes>(h3_quinn::Connection::new(connection))
        .await
        .expect("the client speaks HTTP/3");
    let resolver = connection.accept().await.expect("the client sends").expect("it is a request");
    let (request, mut stream) = resolver.resolve_request().await.expect("it is a request");
    assert_eq!(request.uri().path(), "/object");
    stream.send_response(Response::new(())).await.expect("the client reads it");
    stream.send_data(Bytes::from(vec![0; 50_000])).await.expect("the client reads it");
    stream.finish().await.expect("the client reads it");
    // Until the client closes the connection.
    let _ = connection.accept().await;
}

/// A client that sends one request; returns status and bytes of the response.
pub async fn client(host: Arc<Host>) -> (u16, usize) {
    let config = client_config(&mut host.identity());
    let endpoint = host.endpoint(0, None).expect("one is free");
    let connecting = endpoint.connect_with(config, (host.peer(), PORT).into(), "server.test");
    let connection = connecting.expect("the address is valid").await.expect("the server accepts");
    let (mut driver, mut sender) = h3::client::builder()
        .send_grease(false)
        .build::<_, _, Bytes>(h3_quinn::Connection::new(connection))
        .await
        .expect("the server speaks HTTP/3");
    quinn::Runtime::spawn(&*host, Box::pin(async move { _ = poll_fn(|cx| driver.poll_close(cx)).await }));
    let request = Request::get("https://server.test/object").body(()).expect("it is valid");
    let mut stream = sender.send_request(request).await.expect("the connection is open");
    stream.finish().await.expect("the connection is open");
    let status: StatusCode = stream.recv_response().await.expect("the server answers").status();
    let mut received = 0;
    while let Some(data) = stream.recv_data().await.expect("the server answers") {
        received += data.remaining();
    }
    (status.as_u16(), received)
}
