//! `fathom serve` from the outside: by a client that sends whatever it likes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Ended, ended, program, run, scratch};

const VOLUME: &str = "sim:custom?size=1GiB&iops=1000";

/// A server and how to reach it; it ends when this is dropped.
struct Served {
    child: Child,
    /// What it says after its first lines.
    output: BufReader<ChildStdout>,
    address: String,
    token: Option<String>,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn start(dir: &Path, args: &[&str]) -> Served {
        let mut child = program(dir)
            .args(["serve", "--history=h.db"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
            line
        };
        assert!(line().starts_with("Serving "), "it says what it serves");
        let link = line();
        let place = link.trim().strip_prefix("Open http://").unwrap_or_else(|| panic!("{link}"));
        let (address, path) = place.split_once('/').unwrap();
        let token = path.strip_prefix("login?token=").map(str::to_owned);
        Served { address: address.to_owned(), token, child, output }
    }

    fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// What is answered to a request that is sent as it is.
    fn raw(&self, request: &str) -> Reply {
        let mut client = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        client.read_to_end(&mut text).unwrap();
        Reply(String::from_utf8_lossy(&text).into_owned())
    }

    fn get(&self, path: &str, headers: &[&str]) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1"), headers, "")
    }

    fn post(&self, path: &str, headers: &[&str], body: &str) -> Reply {
        let length = format!("Content-Length: {}", body.len());
        let form = "Content-Type: application/x-www-form-urlencoded";
        self.send(&format!("POST {path} HTTP/1.1"), &[headers, &[form, &length]].concat(), body)
    }

    /// As a page of the server itself does.
    fn post_as_own(&self, path: &str, body: &str) -> Reply {
        self.post(path, &[&format!("Origin: http://127.0.0.1:{}", self.port())], body)
    }

    fn send(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let host = format!("Host: 127.0.0.1:{}", self.port());
        let own = if headers.iter().any(|header| header.starts_with("Host:")) { None } else { Some(&*host) };
        let headers: String =
            own.into_iter().chain(headers.iter().copied()).map(|header| format!("{header}\r\n")).collect();
        self.raw(&format!("{line}\r\n{headers}Connection: close\r\n\r\n{body}"))
    }
}

/// An answer.
#[derive(Debug)]
struct Reply(String);

impl Reply {
    #[track_caller]
    fn status(&self) -> u16 {
        let status = self.0.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{:?}", self.0))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.0.split("\r\n\r\n").next().unwrap();
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().1
    }

    /// Fails unless it is a page with these parts.
    #[track_caller]
    fn has(&self, parts: &[&str]) -> &Reply {
        assert_eq!(self.status(), 200, "{}", self.0);
        for part in parts {
            assert!(self.0.contains(part), "{part:?} is not in {}", self.0);
        }
        self
    }
}

fn bench(dir: &Path, args: &[&str]) -> Ended {
    let fixed = ["bench", "--only=lat-read,rand-read", "--runtime=2s", "--history=h.db", VOLUME];
    run(dir, &[&fixed[..], args].concat()).quietly()
}

#[test]
fn runs_are_listed_searched_opened_compared_and_seen_as_trends() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1", "--tag=before", "--label=slot=<b>"]);
    bench(dir.path(), &["--seed=2"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0"]);
    let list = served.get("/", &[]);
    list.has(&[
        "href=\"/runs/1\"", "href=\"/runs/2\"", "value=\"2\"", "slot=&lt;b&gt;", "Compare the selected",
    ]);
    let policy = list.header("Content-Security-Policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"));
    assert_eq!(list.header("X-Frame-Options"), Some("DENY"));
    assert!(
        !list.0.contains("<meta name=\"referrer\" content=\"no-referrer\">"),
        "own forms tell their origin"
    );
    let found = served.get("/?tag=before&text=CUSTOM&kind=bench", &[]);
    found.has(&["href=\"/runs/1\"", "value=\"before\""]);
    assert!(!found.0.contains("href=\"/runs/2\""));
    served.get("/?text=nowhere", &[]).has(&["No run matches --text nowhere; the history has 2 runs"]);
    served.get("/?since=yesterday", &[]).has(&["role=\"alert\"", "cannot read the time"]);
    let report = served.get("/runs/2", &[]);
    report.has(&[
        "<p class=\"subject\">Run 2: ",
        "class=\"chart\"",
        "Results",
        "Conditions",
        "/runs/2/report.html",
    ]);
    assert!(!report.0.contains("method=\"post\""), "it is read-only");
    assert_eq!(served.get("/runs/2", &[]).body(), report.body(), "a report that is kept is the same");
    let comparison = served.get("/compare?run=2&run=1", &[]);
    comparison.has(&["href=\"/runs/1\"", "class=\"chart\""]);
    served.get("/trend", &[]).has(&["name=\"metric\""]);
    served.get("/trend?metric=rand-read.read.iops&by=host", &[]).has(&["Verdict", "rand-read"]);
    served
        .get("/trend?metric=speed", &[])
        .has(&["role=\"alert\"", "\">&#39;speed&#39; names no metric: write"]);
    assert_eq!(served.get("/runs/last", &[]).header("Location"), Some("/runs/2"));
    assert_eq!(served.get("/runs/2/follow", &[]).header("Location"), Some("/runs/2"), "it has ended");
    served.get("/runs/2/events", &[]).has(&["text/event-stream", "event: end\ndata: /runs/2\n\n"]);
}

#[test]
fn files_are_those_of_the_command_line() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0"]);
    for ending in ["html", "md", "csv", "json"] {
        let name = format!("r.{ending}");
        run(dir.path(), &["report", "1", "--history=h.db", "-o", &name]).quietly();
        let file = std::fs::read_to_string(dir.path().join(&name)).unwrap();
        let reply = served.get(&format!("/runs/1/report.{ending}"), &[]);
        let disposition = format!("attachment; filename=\"run-1.{ending}\"");
        assert_eq!(reply.header("Content-Disposition"), Some(disposition.as_str()));
        assert_eq!(reply.body(), file, "{ending}");
    }
    // A file of that name is nothing to the server.
    std::fs::write(dir.path().join("1"), "{}").unwrap();
    served.get("/compare?run=1", &[]).has(&["Run 1: "]);
    for path in ["/runs/1/report.svg", "/runs/1/report.", "/runs/1/report.html/..", "/runs/2/report.html"] {
        assert_eq!(served.get(path, &[]).status(), 404, "{path}");
    }
}

#[test]
fn nothing_but_runs_can_be_reached() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0"]);
    for path in [
        "/../../etc/passwd",
        "/runs/../../etc/passwd",
        "/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/runs/..%00/report.html",
        "/h.db",
        "/runs/1/report.html/../../../h.db",
        "/runs/1/../h.db",
        "//etc/passwd",
        "/runs/-1",
        "/runs/99",
        "/runs/99999999999999999999",
        "/runs/1/remove",
        "/runs/1/tag",
    ] {
        let reply = served.get(path, &[]);
        assert_eq!(reply.status(), 404, "{path}: {}", reply.0);
        assert!(!reply.0.contains("root:x:"), "{path}");
    }
    for path in ["/compare", "/compare?run=../h.db", "/compare?run=last", "/compare.html?run=/etc/passwd"] {
        assert!(matches!(served.get(path, &[]).status(), 400 | 404), "{path}");
    }
    // A text of a request is text in the page.
    let hostile = "/?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    assert!(!served.get(hostile, &[]).0.contains("<script>alert"));
    assert_eq!(served.get("/favicon.ico", &[]).status(), 204);
}

#[test]
fn requests_of_other_sites_and_names_are_refused() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served =
        Served::start(dir.path(), &["--listen=127.0.0.1:0", "--allow-write", "--host-name=perf.example"]);
    let get = |headers: &[&str]| served.get("/", headers).status();
    assert_eq!(get(&["Host: localhost"]), 200);
    assert_eq!(get(&["Host: PERF.example:80"]), 200);
    assert_eq!(get(&["Host: evil.example"]), 421);
    assert_eq!(get(&["Host: localhost", "Host: evil.example"]), 400);
    assert_eq!(served.raw("GET / HTTP/1.0\r\n\r\n").status(), 400);
    assert_eq!(served.send("GET http://evil.example/ HTTP/1.1", &[], "").status(), 400);
    assert_eq!(get(&["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"]), 403);
    assert_eq!(
        get(&["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]),
        200
    );
    assert_eq!(served.send("DELETE /runs/1 HTTP/1.1", &[], "").status(), 405);
    for headers in [
        &["Origin: http://evil.example"][..],
        &["Origin: null"],
        &[],
        &["Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"],
    ] {
        assert_eq!(served.post("/runs/1/remove", headers, "").status(), 403, "{headers:?}");
    }
    let own = format!("Origin: http://127.0.0.1:{}", served.port());
    let text = ["Content-Type: text/plain", "Content-Length: 5", &own];
    assert_eq!(served.send("POST /runs/1/tag HTTP/1.1", &text, "tag=a").status(), 415);
    assert_eq!(served.get("/runs/1", &[]).status(), 200, "it is still there");
}

#[test]
fn runs_are_changed_only_where_that_is_allowed() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0"]);
    for action in ["tag", "untag", "note", "remove-notes", "remove"] {
        let refused = served.post_as_own(&format!("/runs/1/{action}"), "tag=a&text=b");
        assert_eq!(refused.status(), 403, "{action}");
        assert!(refused.0.contains("--allow-write"), "{}", refused.0);
    }
    drop(served);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0", "--allow-write"]);
    let changed = |action: &str, body: &str| {
        let reply = served.post_as_own(&format!("/runs/1/{action}"), body);
        assert_eq!((reply.status(), reply.header("Location")), (303, Some("/runs/1")), "{}", reply.0);
        served.get("/runs/1", &[])
    };
    changed("tag", "tag=%3Cb%3E").has(&["&lt;b&gt;", "action=\"/runs/1/untag\""]);
    changed("note", "text=after+the+kernel+update").has(&["<li>after the kernel update</li>"]);
    assert!(!changed("untag", "tag=%3Cb%3E").0.contains("&lt;b&gt;"));
    assert!(!changed("remove-notes", "").0.contains("kernel update"));
    assert_eq!(served.post_as_own("/runs/1/tag", "tag=12").status(), 400, "it is a number");
    assert_eq!(served.post_as_own("/runs/1/note", "text=+").status(), 400);
    assert_eq!(served.post_as_own("/runs/9/note", "text=a").status(), 404);
    assert_eq!(served.post_as_own("/runs/1/start", "").status(), 404);
    served.get("/runs/1/remove", &[]).has(&["permanently", "action=\"/runs/1/remove\""]);
    let removed = served.post_as_own("/runs/1/remove", "");
    assert_eq!((removed.status(), removed.header("Location")), (303, Some("/")));
    assert_eq!(served.get("/runs/1", &[]).status(), 404, "no page of it is left");
    served.get("/", &[]).has(&["No runs are stored."]);
}

#[test]
fn elsewhere_than_on_loopback_readers_need_a_token() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let mut served = Served::start(dir.path(), &["--listen=0.0.0.0:0", "--allow-write"]);
    let token = served.token.clone().expect("it prints a link with one");
    let mut line = String::new();
    served.output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), format!("Token: {token}"));
    for path in ["/", "/runs/1", "/runs/1/report.json", "/runs/1/events", "/trend", "/no/such/page"] {
        let refused = served.get(path, &[]);
        assert_eq!(refused.status(), 401, "{path}");
        assert!(!refused.0.contains("sim:") && refused.0.contains("action=\"/login\""), "{}", refused.0);
        assert_eq!(served.get(path, &["Authorization: Bearer wrong"]).status(), 401, "{path}");
        assert_eq!(served.get(path, &["Cookie: fathom-1=wrong"]).status(), 401, "{path}");
    }
    let bearer = format!("Authorization: Bearer {token}");
    served.get("/", &[&bearer]).has(&["/runs/1"]);
    assert_eq!(served.post("/runs/1/tag", &[&bearer], "tag=a").status(), 303, "a program has no page");
    let wrong = served.get("/login?token=wrong", &[]);
    assert!(wrong.status() == 401 && wrong.header("Set-Cookie").is_none(), "{}", wrong.0);
    let signed_in = served.get(&format!("/login?token={token}"), &[]);
    signed_in.has(&["http-equiv=\"refresh\" content=\"0; url=/\""]);
    let cookie = signed_in.header("Set-Cookie").unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict") && !cookie.contains(&token), "{cookie}");
    let cookie = format!("Cookie: a=b; {}", cookie.split(';').next().unwrap());
    served.get("/runs/1", &[&cookie]).has(&["Run 1: "]);
    assert_eq!(served.post("/runs/1/tag", &[&cookie], "tag=b").status(), 403, "it comes from nowhere");
    let entered = served.post_as_own("/login", &format!("token={token}&next=%2Fruns%2F1"));
    assert_eq!((entered.status(), entered.header("Location")), (303, Some("/runs/1")));
    let led_away = served.post_as_own("/login", &format!("token={token}&next=%2F%2Fevil.example"));
    assert_eq!(led_away.header("Location"), Some("/"));
    let report = served.get("/runs/1", &[&cookie]);
    let shared = report.0.split("href=\"").find(|part| part.starts_with("/shared/1/")).unwrap();
    let shared = shared.split('"').next().unwrap();
    served.get(shared, &[]).has(&["Conditions"]);
    assert!(!served.get(shared, &[]).0.contains("/runs/1"), "it leads nowhere else");
    assert_eq!(served.get(&shared.replace("/1/", "/2/"), &[]).status(), 401);
    assert_eq!(served.get(&format!("{}x", &shared[..shared.len() - 1]), &[]).status(), 401);
    // A browser that comes from elsewhere is led on, and then sends its cookie.
    let elsewhere = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let led_on = served.get("/runs/1", &elsewhere);
    assert!(led_on.status() == 401 && led_on.0.contains("url=/runs/1"), "{}", led_on.0);
}

#[test]
fn a_token_of_the_user_is_not_printed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let path = dir.path().join("token");
    std::fs::write(&path, "correct-horse-battery\n").unwrap();
    let refused = run(dir.path(), &["serve", "--history=h.db", "--listen=127.0.0.1:0", "--token-file=token"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("hint: make it yours alone: chmod 600"), "{}", refused.stderr);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0", "--token-file=token"]);
    assert_eq!(served.token, None);
    assert_eq!(served.get("/", &[]).status(), 401);
    served.get("/", &["Authorization: Bearer correct-horse-battery"]).has(&["/runs/1"]);
    let taken = run(dir.path(), &["serve", "--history=h.db", &format!("--listen={}", served.address)]);
    assert_eq!(taken.code, Some(2), "{taken:?}");
    assert!(taken.stderr.contains("cannot listen on 127.0.0.1:"), "{}", taken.stderr);
}

#[test]
fn clients_that_send_too_much_or_nothing_disturb_nobody() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0", "--allow-write"]);
    // More than there are places.
    let silent: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut client = TcpStream::connect(&served.address).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
            client
        })
        .collect();
    // One that asks and does not read.
    let mut slow = TcpStream::connect(&served.address).unwrap();
    for _ in 0..50 {
        slow.write_all(b"GET /runs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    let long = format!("A: {}", "a".repeat(20 << 10));
    assert_eq!(served.get("/", &[&long]).status(), 431);
    let many: Vec<String> = (0..70).map(|number| format!("A{number}: b")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(served.get("/", &many).status(), 431);
    assert_eq!(served.post_as_own("/runs/1/note", &format!("text={}", "a".repeat(17 << 10))).status(), 413);
    assert_eq!(served.raw("\x16\x03\x01\x02\x00\r\n\r\n").status(), 400);
    served.get("/runs/1", &[]).has(&["Run 1: "]);
    drop((silent, slow));
}

/// A bench of a file, which takes so long that a server of the lowest priority beside busy tests shows it.
fn begin_bench(dir: &Path) -> Child {
    program(dir)
        .args([
            "bench", "--only=rand-read", "--size=16m", "--runtime=10s", "--history=h.db", "--tag=live", ".",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the list names a run that goes on; fails where `child` ends before.
fn wait_for_run(served: &Served, child: &mut Child) {
    while !served.get("/", &[]).0.contains("href=\"/runs/2/follow\"") {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
    }
}

#[test]
fn a_run_is_followed_to_its_end() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0"]);
    let mut child = begin_bench(dir.path());
    wait_for_run(&served, &mut child);
    served.get("/runs/2/follow", &[]).has(&["data-events=\"/runs/2/events\"", "EventSource"]);
    served.get("/runs/2", &[]).has(&["bench, incomplete", "href=\"/runs/2/follow\""]);
    let events = served.get("/runs/2/events", &[]);
    events.has(&["event: view\ndata: ", "<dt>IOPS</dt>", "IOPS over time", "<dd>measuring</dd>"]);
    assert!(events.0.contains("event: end\ndata: /runs/2\n\n"), "{}", events.0);
    // Its report is there as soon as it has ended.
    served.get("/runs/2", &[]).has(&["bench, complete"]);
    ended(child.wait_with_output().unwrap()).quietly();
}

#[test]
fn a_run_that_is_killed_is_no_longer_followed_and_leaves_nothing() {
    let dir = scratch();
    bench(dir.path(), &["--seed=1"]);
    let served = Served::start(dir.path(), &["--listen=127.0.0.1:0", "--allow-write"]);
    let mut child = begin_bench(dir.path());
    wait_for_run(&served, &mut child);
    assert_eq!(served.post_as_own("/runs/2/remove", "").status(), 409, "it goes on");
    let mut client = TcpStream::connect(&served.address).unwrap();
    client.write_all(b"GET /runs/2/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(client).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "event: view"));
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(lines.any(|line| line == "event: end"));
    assert!(!served.get("/", &[]).0.contains("follow"));
    let names: Vec<String> =
        crate::files_in(dir.path()).iter().map(|path| path.display().to_string()).collect();
    assert!(!names.iter().any(|name| name.contains("sock") || name.contains("live")), "{names:?}");
    assert_eq!(served.post_as_own("/runs/2/remove", "").status(), 303);
}
