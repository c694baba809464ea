//! Head of an HTTP request: method, target and host, which are all that a profile's page needs.

/// Largest size of a request head, in bytes.
pub const HEAD_MAX: usize = 16 << 10;
/// Largest number of headers.
const HEADERS_MAX: usize = 128;

/// Head of an HTTP request.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    pub target: String,
    /// Value of the header `Host`; empty if it is missing.
    pub host: String,
}

/// Error answer to a request that cannot be served.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    /// HTTP status.
    pub status: u16,
    pub why: &'static str,
}

const BAD: HttpRefusal = HttpRefusal { status: 400, why: "this is no request that kerntune view knows\n" };
const BODY: HttpRefusal = HttpRefusal { status: 413, why: "kerntune view takes no request with a body\n" };
/// The head is longer than [`HEAD_MAX`].
pub const LONG: HttpRefusal = HttpRefusal { status: 431, why: "the request is too long\n" };
/// The head was not complete in time.
pub const LATE: HttpRefusal = HttpRefusal { status: 408, why: "the request took too long\n" };

impl HttpRequest {
    /// Parses a request head; `None` while it is incomplete.
    pub fn parse(bytes: &[u8]) -> Option<Result<Self, HttpRefusal>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(bytes) {
            // The library skips empty lines before the request.
            Ok(_) if bytes.starts_with(b"\r") || bytes.starts_with(b"\n") => Some(Err(BAD)),
            Ok(status) => status.is_complete().then(|| Self::read(&head)),
            Err(httparse::Error::TooManyHeaders) => Some(Err(LONG)),
            Err(_) => Some(Err(BAD)),
        }
    }

    fn read(head: &httparse::Request) -> Result<Self, HttpRefusal> {
        let mut host = None;
        for header in &*head.headers {
            match header.name.to_ascii_lowercase().as_str() {
                "host" if host.is_some() => return Err(BAD),
                "host" => host = Some(std::str::from_utf8(header.value).map_err(|_| BAD)?),
                "content-length" if header.value == b"0" => {}
                "content-length" | "transfer-encoding" => return Err(BODY),
                _ => {}
            }
        }
        let (method, target) = head.method.zip(head.path).ok_or(BAD)?;
        let host = host.unwrap_or_default();
        Ok(Self { method: method.to_owned(), target: target.to_owned(), host: host.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_they_are_whole() {
        let text = "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:7\r\nAccept: */*\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(HttpRequest::parse(&text.as_bytes()[..length]), None);
        }
        let request = HttpRequest::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.target, &*request.host), ("GET", "/a?b", "127.0.0.1:7"));
        let refused = |text: &str| HttpRequest::parse(text.as_bytes()).unwrap().unwrap_err();
        assert_eq!(refused("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n"), BODY);
        for text in
            ["\r\n\r\n", "GET /\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"]
        {
            assert_eq!(refused(text), BAD, "{text:?}");
        }
    }
}
