//! HTTP on loopback, for who knows the token: it is in the address that is printed, and in nothing else.

use crate::exit::Failure;
use kerntune_work::interrupt;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response};

/// Requests that are answered at a time.
const WORKERS: usize = 4;
/// How often it is looked whether to end.
const LOOK: Duration = Duration::from_millis(200);

/// What is answered.
pub struct Answer {
    /// HTTP's: 200, 202 (not yet), 400, 404, 500.
    pub status: u16,
    /// Of the body.
    pub kind: &'static str,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(kind: &'static str, body: Vec<u8>) -> Self {
        Self { status: 200, kind, body }
    }

    /// A message instead.
    pub fn text(status: u16, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
    }
}

/// Who knows answers: to a path below the token, and what follows its question mark.
pub trait Answering: Sync {
    fn answer(&self, path: &str, question: &str) -> Answer;
    /// What is to be done beside the answers, until it breaks.
    fn work(&self);
}

/// Listens on 127.0.0.1.
pub struct Server {
    http: tiny_http::Server,
    port: u16,
    token: String,
}

impl Server {
    /// Takes the port, or one that is free for 0.
    pub fn open(port: u16) -> Result<Self, Failure> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| Failure::recording(std::io::Error::from(error)))?;
        let token = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let http = tiny_http::Server::http((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            let taken =
                error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::AddrInUse);
            let what = if taken { "is taken; name another with --port".into() } else { error.to_string() };
            Failure::usage(format!("--port: 127.0.0.1:{port} {what}"))
        })?;
        let port = http.server_addr().to_ip().map_or(port, |address| address.port());
        Ok(Self { http, port, token })
    }

    /// Where its page is.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers until it is interrupted.
    pub fn serve(&self, answering: &impl Answering) {
        std::thread::scope(|scope| {
            scope.spawn(|| answering.work());
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    while !interrupt::is_set() {
                        match self.http.recv_timeout(LOOK) {
                            Ok(Some(request)) => self.one(request, answering),
                            Ok(None) => {}
                            Err(_) => std::thread::sleep(LOOK),
                        }
                    }
                });
            }
        });
    }

    fn one(&self, request: Request, answering: &impl Answering) {
        let answer = match self.allowed(&request) {
            Some((path, question)) => answering.answer(path, question),
            None => Answer::text(
                403,
                "kerntune view: this is not its address; it is the one that the command printed\n",
            ),
        };
        let mut response = Response::from_data(answer.body).with_status_code(answer.status);
        for (name, value) in [
            ("Content-Type", answer.kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ] {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        // Who went away needs no answer.
        let _ = request.respond(response);
    }

    /// What is asked for, if the token is there and the request is meant for this machine: a page elsewhere whose name
    /// was made to point here is refused.
    fn allowed<'a>(&self, request: &'a Request) -> Option<(&'a str, &'a str)> {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"))?.value.as_str();
        let ours = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if *request.method() != Method::Get || !ours.iter().any(|ours| ours == host) {
            return None;
        }
        let (token, rest) = request.url().strip_prefix('/')?.split_once('/')?;
        if !same(token.as_bytes(), self.token.as_bytes()) {
            return None;
        }
        Some(rest.split_once('?').unwrap_or((rest, "")))
    }
}

/// Takes as long wherever they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
