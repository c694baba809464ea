//! Loopback HTTP server, authenticated by a random token in the printed URL.

use super::connection::{self, HttpConnection};
use super::request::HttpRequest;
use kerntune_command::Failure;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Largest number of requests that are answered at the same time.
const WORKERS: usize = 4;
/// Largest number of connections. If there are more, the oldest one without a request is closed.
const CONNECTIONS: usize = 64;
/// Interval of the checks for a stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Answer to an HTTP request.
pub struct HttpAnswer {
    /// HTTP status: 200, 202 (not ready yet), 400, 404, 500.
    pub status: u16,
    /// Content type of the body.
    pub kind: &'static str,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    pub fn new(kind: &'static str, body: Vec<u8>) -> Self {
        Self { status: 200, kind, body }
    }

    /// Makes an answer with a text message.
    pub fn text(status: u16, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
    }
}

/// Application behind the server. `answer` gets the path below the token, and the query.
pub trait AnswerRequests: Sync {
    fn answer(&self, path: &str, question: &str) -> HttpAnswer;
    /// Background work while the server runs; must return after an interrupt.
    fn work(&self);
}

/// HTTP server on 127.0.0.1.
pub struct HttpServer {
    listener: TcpListener,
    port: u16,
    token: String,
}

impl HttpServer {
    /// Listens on a port; 0 picks a free one.
    pub fn open(port: u16) -> Result<Self, Failure> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| Failure::recording(std::io::Error::from(error)))?;
        let token = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let open = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) = open().map_err(|error: std::io::Error| {
            let taken = error.kind() == ErrorKind::AddrInUse;
            let what = if taken { "is taken; name another with --port".into() } else { error.to_string() };
            Failure::usage(format!("--port: 127.0.0.1:{port} {what}"))
        })?;
        Ok(Self { listener, port, token })
    }

    /// Returns the URL of the page, including the token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Serves requests until `stop` returns true; no client can prevent this.
    pub fn serve(&self, answering: &impl AnswerRequests, stop: &(dyn Fn() -> bool + Sync)) {
        let (clients, free) = (ClientList::default(), ComputePermits::new(WORKERS));
        std::thread::scope(|scope| {
            scope.spawn(|| answering.work());
            while !stop() {
                let stream = match self.listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(_) => {
                        let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&POLL_INTERVAL));
                        continue;
                    }
                };
                let Some(number) = clients.add(&stream) else { continue };
                let (clients, free) = (&clients, &free);
                let serve = move || {
                    self.serve_one(
                        &mut HttpConnection::new(stream, stop),
                        answering,
                        &|| clients.is_asked(number),
                        free,
                    );
                    clients.remove(number);
                };
                // If no thread can be started, the client is dropped.
                if std::thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    clients.remove(number);
                }
            }
        });
    }

    /// Reads one request and writes its answer.
    fn serve_one(
        &self,
        connection: &mut HttpConnection,
        answering: &impl AnswerRequests,
        asked: &dyn Fn(),
        free: &ComputePermits,
    ) {
        let Ok(request) = connection.request() else { return };
        asked();
        let answer = match &request {
            Ok(request) => match self.allowed(request) {
                Some((path, question)) => {
                    let _place = free.acquire();
                    answering.answer(path, question)
                }
                None => HttpAnswer::text(
                    403,
                    "kerntune view: this is not its address; it is the one that the command printed\n",
                ),
            },
            Err(refusal) => HttpAnswer::text(refusal.status, refusal.why),
        };
        // The client may have closed the connection.
        let _ = write(connection, &answer).and_then(|()| connection.end());
    }

    /// Returns path and query of a request with the right token and host. The check of the host
    /// rejects pages of other sites whose name resolves to this machine (DNS rebinding).
    fn allowed<'a>(&self, request: &'a HttpRequest) -> Option<(&'a str, &'a str)> {
        let ours = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if request.method != "GET" || !ours.contains(&request.host) {
            return None;
        }
        let (token, rest) = request.target.strip_prefix('/')?.split_once('/')?;
        if !same(token.as_bytes(), self.token.as_bytes()) {
            return None;
        }
        Some(rest.split_once('?').unwrap_or((rest, "")))
    }
}

fn write(connection: &mut HttpConnection, answer: &HttpAnswer) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
        answer.status,
        connection::reason(answer.status),
        answer.kind,
        answer.body.len()
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(&answer.body)
}

/// Connected clients, and the last number assigned.
#[derive(Default)]
struct ClientList(Mutex<(u64, Vec<HttpClient>)>);

struct HttpClient {
    number: u64,
    stream: TcpStream,
    is_asked: bool,
}

impl ClientList {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<HttpClient>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client and returns its number. If there are too many, the oldest client without a
    /// request is dropped; if all have sent one, the new client is dropped.
    fn add(&self, stream: &TcpStream) -> Option<u64> {
        let mut all = self.lock();
        let (last, clients) = &mut *all;
        if clients.len() >= CONNECTIONS {
            let silent = clients.iter().position(|client| !client.is_asked)?;
            let _ = clients.remove(silent).stream.shutdown(Shutdown::Both);
        }
        *last += 1;
        clients.push(HttpClient { number: *last, stream: stream.try_clone().ok()?, is_asked: false });
        Some(*last)
    }

    fn is_asked(&self, number: u64) {
        if let Some(client) = self.lock().1.iter_mut().find(|client| client.number == number) {
            client.is_asked = true;
        }
    }

    fn remove(&self, number: u64) {
        self.lock().1.retain(|client| client.number != number);
    }
}

/// Counting semaphore that limits concurrent computations of answers.
struct ComputePermits(Mutex<usize>, Condvar);

impl ComputePermits {
    fn new(count: usize) -> Self {
        Self(Mutex::new(count), Condvar::new())
    }

    fn acquire(&self) -> ComputePermit<'_> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.1.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        ComputePermit(self)
    }
}

struct ComputePermit<'a>(&'a ComputePermits);

impl Drop for ComputePermit<'_> {
    fn drop(&mut self) {
        *self.0 .0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0 .1.notify_one();
    }
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// Upper bound for any answer, even on a busy machine.
    const GENEROUS: Duration = Duration::from_secs(60);

    /// Application that returns the request; the path `large` returns 64 MiB.
    struct Echo;

    impl AnswerRequests for Echo {
        fn answer(&self, path: &str, question: &str) -> HttpAnswer {
            match path {
                "large" => HttpAnswer::new("text/plain", vec![b'x'; 64 << 20]),
                _ => HttpAnswer::new("text/plain", format!("{path}|{question}").into_bytes()),
            }
        }

        fn work(&self) {}
    }

    fn connect(server: &HttpServer) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        stream
    }

    /// Sends these bytes and returns the answer.
    fn ask(server: &HttpServer, request: &str) -> String {
        let mut stream = connect(server);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(server: &HttpServer, path: &str) -> String {
        let HttpServer { port, token, .. } = server;
        ask(server, &format!("GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"))
    }

    /// Runs `work` with a running server, and checks that the server stops afterwards.
    fn served<T>(work: impl FnOnce(&HttpServer) -> T) {
        let server = HttpServer::open(0).unwrap();
        let stopped = AtomicBool::new(false);
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let server = &server;
            let stopped = &stopped;
            scope.spawn(move || {
                server.serve(&Echo, &|| stopped.load(Ordering::Relaxed));
                ended.send(()).unwrap();
            });
            // Stops the server even if `work` panics, so that the panic is reported.
            let open = catch_unwind(AssertUnwindSafe(|| work(server)));
            stopped.store(true, Ordering::Relaxed);
            end.recv_timeout(GENEROUS).expect("it ends while clients are connected");
            open.unwrap_or_else(|panic| resume_unwind(panic));
        });
    }

    #[test]
    fn the_page_alone_is_answered() {
        served(|server| {
            let HttpServer { port, token, .. } = server;
            let answer = get(server, "select?from=1&to=2");
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Content-Length: 18\r\n"),
                "{answer}"
            );
            assert!(
                answer.contains("X-Frame-Options: DENY") && answer.ends_with("\r\n\r\nselect|from=1&to=2")
            );
            let host = format!("Host: localhost:{port}\r\n");
            for (request, status) in [
                (format!("GET /{token}/ HTTP/1.0\r\n{host}\r\n"), 200),
                (format!("GET /{token}/ HTTP/1.1\r\nHost: example.org\r\n\r\n"), 403),
                (format!("GET /{token}/ HTTP/1.1\r\n\r\n"), 403),
                (format!("GET /{token}x/ HTTP/1.1\r\n{host}\r\n"), 403),
                (format!("POST /{token}/ HTTP/1.1\r\n{host}\r\n"), 403),
                (format!("GET /{token}/ HTTP/1.1\r\n{host}{host}\r\n"), 400),
                (format!("GET /{token}/ HTTP/1.1\r\n{host}Content-Length: 5\r\n\r\nabcde"), 413),
                (format!("GET /{token}/ HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"), 413),
                (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(1 << 20)), 431),
                (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(1 << 20)), 431),
                ("\0\u{1}nonsense\r\n\r\n".into(), 400),
                ("GET / HTTP/2\r\n\r\n".into(), 400),
            ] {
                // The server may close before all of a far too long request is sent.
                let mut stream = connect(server);
                let _ = stream.write_all(request.as_bytes());
                let mut answer = vec![0; 12];
                stream.read_exact(&mut answer).unwrap();
                let start: String = request.chars().take(60).collect();
                assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"), "{start:?}");
            }
        });
    }

    #[test]
    fn silent_slow_and_greedy_clients_stop_nobody() {
        served(|server| {
            let HttpServer { port, token, .. } = server;
            let mut open = Vec::new();
            for number in 0..3 * CONNECTIONS {
                let mut stream = connect(server);
                let request = match number % 4 {
                    0 => String::new(),
                    1 => format!("GET /{token}/ HTT"),
                    // A body that is never sent; an answer that is not read.
                    2 => {
                        format!("GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100000\r\n\r\n")
                    }
                    _ if number < 16 => {
                        format!("GET /{token}/large HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
                    }
                    _ => "GET".into(),
                };
                let _ = stream.write_all(request.as_bytes());
                open.push(stream);
            }
            let began = Instant::now();
            while !get_now(server).is_some_and(|answer| answer.ends_with("page|")) {
                assert!(began.elapsed() < GENEROUS, "nobody is answered");
            }
            open
        });
    }

    /// Sends requests with one byte or part changed: each must be answered or closed, and without
    /// the token nobody gets the page. `KERNTUNE_ATTACK_MUTATIONS` is their number; `make attack`
    /// sets a larger one.
    #[test]
    fn no_request_gets_the_page_without_the_token() {
        let asked = std::env::var("KERNTUNE_ATTACK_MUTATIONS").ok().and_then(|text| text.parse().ok());
        served(|server| {
            let HttpServer { port, token, .. } = server;
            let parts: [&[u8]; 12] = [
                b"GET",
                b"POST",
                b"\r\n",
                b"\r\n\r\n",
                b" HTTP/1.1",
                b"Host: 127.0.0.1",
                b"/../",
                b"%2e%2e%2f",
                b"?",
                b"\0",
                b"Content-Length: 99",
                b"Transfer-Encoding: chunked",
            ];
            let mut rng = kerntune_stats::Rng::new(8);
            let mut below = |limit: usize| rng.index(limit);
            let (mut answered, mut refused) = (0, 0);
            for _ in 0..asked.unwrap_or(200) {
                let mut request = format!(
                    "GET /{token}/page?a=b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n"
                )
                .into_bytes();
                for _ in 0..=below(3) {
                    let at = below(request.len());
                    match below(4) {
                        0 => request[at] ^= 1 << below(8),
                        1 => request.truncate(at.max(1)),
                        2 => drop(request.splice(at..at, parts[below(parts.len())].iter().copied())),
                        _ => drop(request.splice(
                            at..(at + 9).min(request.len()),
                            parts[below(parts.len())].iter().copied(),
                        )),
                    }
                }
                let mut stream = connect(server);
                let _ = stream.write_all(&request);
                let _ = stream.shutdown(Shutdown::Write);
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                let text = String::from_utf8_lossy(&request);
                match answer.starts_with(b"HTTP/1.1 200") {
                    true => {
                        answered += 1;
                        assert!(text.starts_with(&format!("GET /{token}/")), "{text:?}");
                    }
                    false => refused += 1,
                }
            }
            assert!(get(server, "page").ends_with("page|"), "it answers as before");
            println!("{refused} changed requests refused, {answered} answered");
        });
    }

    /// Returns the answer, or `None` if the connection was dropped.
    fn get_now(server: &HttpServer) -> Option<String> {
        let HttpServer { port, token, .. } = server;
        let mut stream = connect(server);
        stream
            .write_all(format!("GET /{token}/page HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}
