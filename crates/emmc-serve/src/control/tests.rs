//! Orders over a socket, and their effects.

use std::time::Duration;

use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::sync::{Arc, mpsc};

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_units::{Instant, Nanos, Rng};
use serde_json::Value;

use super::{Control, ControlServer, Order, StopOrder, ask};
use super::{ask_within, connect_within};
use crate::block::{Block, BlockError, Request};
use crate::layer::{Fault, Faults, Stats};
use crate::listener::bind_private;
use crate::sdhci::{HostError, HostFault, HostFaults};
use crate::served::{Served, ServedOptions};

struct Rig {
    folder: tempfile::TempDir,
    served: Arc<Served>,
    block: Arc<dyn Block>,
    stopped: mpsc::Receiver<StopOrder>,
    _server: ControlServer,
}

impl Rig {
    fn new() -> Self {
        let timing = ServedOptions { delays: false, dilation: 1 };
        Self::serving(|card| Served::new(card, Instant::START, timing))
    }

    fn serving(serve: impl FnOnce(Card) -> Served) -> Self {
        let options = DeviceOptions { keep: StoredContent::Data, seed: 1 };
        let card = Card::new(shipped::named("generic-8g").unwrap(), options).unwrap();
        let served = Arc::new(serve(card));
        let faults = Arc::new(Faults::new(Arc::clone(&served) as Arc<dyn Block>));
        let stats = Arc::new(Stats::new(Arc::clone(&faults) as Arc<dyn Block>, Arc::clone(&served)));
        let (stop, stopped) = mpsc::channel();
        let folder = tempfile::tempdir().unwrap();
        let control = Control {
            served: Arc::clone(&served),
            faults,
            host_faults: HostFaults::default(),
            stats: Arc::clone(&stats),
            stop,
        };
        let server = ControlServer::start(&folder.path().join("socket"), control).unwrap();
        Self { folder, served, block: stats, stopped, _server: server }
    }

    fn ask(&self, order: &Order) -> Value {
        ask(&self.folder.path().join("socket"), order).unwrap()
    }

    fn write(&self) -> Result<Instant, BlockError> {
        self.block.submit(Area::User, Request::Write { offset: 8192, data: &[7; 4096], through: true })
    }
}

#[test]
fn power_is_cut_now_or_at_an_operation_and_returns() {
    let rig = Rig::new();
    rig.write().unwrap();
    rig.ask(&Order::Cut { at_operation: None, seed: 0 });
    assert_eq!(rig.write(), Err(BlockError::PowerLost));
    assert_eq!(rig.ask(&Order::State)["powered"], false);
    rig.ask(&Order::On);
    rig.ask(&Order::Cut { at_operation: Some(40), seed: 5 });
    // A write is a few operations: some pass before the cut, and none after it.
    let done = (0..40).take_while(|_| rig.write().is_ok()).count();
    assert!((1..40).contains(&done), "{done}");
    assert_eq!(rig.write(), Err(BlockError::PowerLost));
    rig.ask(&Order::On);
    rig.write().unwrap();
}

#[test]
fn state_and_stats_report_the_work() {
    let rig = Rig::new();
    rig.write().unwrap();
    let state = rig.ask(&Order::State);
    assert_eq!(state["mapped"][0]["area"], "user");
    assert_eq!(state["mapped"][0]["mapped_sectors"], 8);
    assert_eq!(state["inside"]["ftl"]["host_units"], 1);
    assert!(state["operations"].as_u64().unwrap() >= 1 && state["open_blocks"].as_array().unwrap().len() == 1);
    let stats = rig.ask(&Order::Stats);
    assert_eq!(stats["requests"]["write"]["bytes"], 4096);
    assert!(stats["client"].is_null(), "no client drives the clock");
    rig.ask(&Order::Speed { dilation: Some(20), delays: Some(true) });
    let state = rig.ask(&Order::State);
    assert_eq!((&state["dilation"], &state["delays"]), (&20.into(), &true.into()));
    rig.ask(&Order::Inject { fault: Fault { times: Some(1), ..Fault::default() } });
    assert!(rig.write().is_err() && rig.write().is_ok());
    rig.ask(&Order::InjectHost {
        fault: HostFault { command: Some(18), times: Some(1), ..HostFault::of(HostError::DataCrc) },
    });
    let state = rig.ask(&Order::State);
    assert_eq!(state["host_faults"][0]["error"], "data-crc");
    let open = &state["open_units"][0];
    assert_eq!((&open["area"], &open["first"], &open["blocks"]), (&"user".into(), &0.into(), &state["open_blocks"]));
    assert!(rig.write().is_ok(), "no command of a host");
    rig.ask(&Order::ClearFaults);
    assert_eq!(rig.ask(&Order::State)["host_faults"].as_array().unwrap().len(), 0);
    // `ask` would wait for the end of the process, which is this one.
    let client = std::os::unix::net::UnixStream::connect(rig.folder.path().join("socket")).unwrap();
    std::io::Write::write_all(&mut &client, b"{\"do\":\"stop\"}\n").unwrap();
    rig.stopped.recv().unwrap();
}

#[test]
fn an_invalid_line_gets_an_error_and_the_next_line_is_executed() {
    use std::io::{BufRead, BufReader, Write};
    let rig = Rig::new();
    let client = std::os::unix::net::UnixStream::connect(rig.folder.path().join("socket")).unwrap();
    let mut lines = BufReader::new(&client).lines();
    for (line, expected) in [
        ("nonsense", "not understood"),
        ("{}", "missing field `do`"),
        (r#"{"do":"explode"}"#, "unknown variant"),
        (r#"{"do":"cut","when":"now"}"#, "unknown field"),
        (r#"{"do":"cut","at_operation":0}"#, "count from 1"),
        (r#"{"do":"speed","dilation":0}"#, "at least 1"),
        (r#"{"do":"inject","fault":{"area":"rpmb"}}"#, "boot0"),
        (r#"{"do":"inject","fault":{"area":"gp2"}}"#, "the card has no gp2"),
        (r#"{"do":"inject","fault":{"from":4096,"to":4096}}"#, "no byte lies between"),
        (r#"{"do":"inject","fault":{"area":"boot0","from":4294967296}}"#, "where the area ends"),
        (r#"{"do":"inject","fault":{"times":0}}"#, "at least 1"),
        (r#"{"do":"inject-host"}"#, "missing field"),
        (r#"{"do":"inject-host","fault":{"error":"x"}}"#, "unknown variant"),
        (r#"{"do":"inject-host","fault":{"error":"status","command":64}}"#, "0 to 63"),
        (&"x".repeat(200_000), "longer than 65536 bytes"),
        (r#"{"do":"at","at_ns":5,"order":{"do":"cut"}}"#, "on its client's clock"),
        (r#"{"do":"in","in_ns":5,"order":{"do":"stop"}}"#, "expected cut, on"),
        (r#"{"do":"at","at_ns":5,"order":{"do":"cut","at_operation":0}}"#, "count from 1"),
        (r#"{"do":"reset"}"#, "ok"),
    ] {
        (&client).write_all(format!("{line}\n").as_bytes()).unwrap();
        let answer = lines.next().unwrap().unwrap();
        assert!(answer.contains(expected), "{line}: {answer}");
    }
    (&client).write_all(b"{\"do\":\"\xff\"}\n{\"do\":\"on\"}\n").unwrap();
    assert!(lines.next().unwrap().unwrap().contains("byte 7 is no UTF-8"));
    assert!(lines.next().unwrap().unwrap().contains("ok"));
}

#[test]
fn orders_for_later_are_executed_at_their_instant_by_who_drives_the_clock() {
    let start = Instant(5_000_000_000);
    let rig = Rig::serving(|card| Served::driven(card, start));
    let later = |ns: u64, order: Order| Order::At { at_ns: ns, order: Box::new(order) };
    let served = &rig.served;
    rig.ask(&later(3_000_000_000, Order::On));
    rig.ask(&later(1_000_000_000, Order::Cut { at_operation: None, seed: 0 }));
    assert_eq!(rig.ask(&Order::State)["next_order_ns"], 1_000_000_000u64);
    assert_eq!(served.next_scheduled(), Some(start + Nanos(1_000_000_000)));
    served.act_until(start + Nanos(999_999_999));
    rig.write().unwrap();
    served.act_until(start + Nanos(2_000_000_000));
    assert_eq!(rig.write(), Err(BlockError::PowerLost));
    assert_eq!(served.now(), start + Nanos(1_000_000_000), "the clock shows when it was done");
    let error = rig.ask(&later(999_999_999, Order::Reset))["error"].clone();
    assert!(error.as_str().unwrap().contains("already shows 1000000000 ns"), "{error}");
    rig.ask(&Order::In {
        in_ns: 500_000_000,
        order: Box::new(Order::Inject { fault: Fault { area: Some("gp2".into()), ..Fault::default() } }),
    });
    served.act_until(start + Nanos(3_000_000_000));
    assert_eq!(rig.ask(&Order::Stats)["client"]["clock_ns"], 3_000_000_000u64);
    rig.write().unwrap();
    let state = rig.ask(&Order::State);
    assert_eq!(state["failed_orders"][0].as_str().unwrap().split(':').next(), Some("at 1500000000 ns"));
    assert!(state["next_order_ns"].is_null());
}

#[test]
fn a_refused_stop_has_its_reason() {
    let rig = Rig::new();
    let socket = rig.folder.path().join("socket");
    let asked = std::thread::spawn(move || ask(&socket, &Order::Stop).unwrap());
    rig.stopped.recv().unwrap().answer(Err("/dev/loop7 is still in use".into()));
    assert_eq!(asked.join().unwrap()["error"], "/dev/loop7 is still in use");
    assert_eq!(rig.ask(&Order::State)["powered"], true);
}

/// A server that is stopped (SIGSTOP) takes no clients and answers none.
#[test]
fn a_server_that_does_not_answer_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = bind_private(&socket).unwrap();
    let error = ask_within(&socket, &Order::State, Duration::from_millis(20)).unwrap_err();
    assert!(error.to_string().contains("the server does not answer in 20ms"), "{error}");
    // One that takes no more clients.
    let full = folder.path().join("full");
    let listener = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    net::bind(&listener, &SocketAddrUnix::new(&full).unwrap()).unwrap();
    net::listen(&listener, 0).unwrap();
    let waiting: Vec<_> = (0..2).map_while(|_| connect_within(&full, Duration::from_millis(20)).ok()).collect();
    assert_eq!(waiting.len(), 1);
    let error = ask_within(&full, &Order::State, Duration::from_millis(20)).unwrap_err();
    assert!(error.to_string().contains("the server does not answer"), "{error}");
}

/// `EMMCLAB_SESSIONS` is their number.
#[test]
fn malformed_sessions_are_answered_and_end() {
    use std::io::{Read, Write};
    let rig = Rig::new();
    let variable = std::env::var("EMMCLAB_SESSIONS").ok();
    let sessions: u64 = variable.map_or(200, |count| count.parse().expect("a number of sessions"));
    let mut rng = Rng::new(1);
    let mut below = |limit: usize| rng.below(limit as u64) as usize;
    let lines = [
        r#"{"do":"state"}"#,
        r#"{"do":"cut","at_operation":3,"seed":7}"#,
        r#"{"do":"on"}"#,
        r#"{"do":"inject","fault":{"area":"boot0","from":0,"to":512,"times":1}}"#,
        r#"{"do":"inject-host","fault":{"error":"data-crc","command":18,"times":1}}"#,
        r#"{"do":"at","at_ns":5,"order":{"do":"cut"}}"#,
        r#"{"do":"clear-faults"}"#,
        r#"[[[[[[[[{"do":null}]]]]]]]]"#,
    ];
    for session in 0..sessions {
        let mut bytes = Vec::new();
        for _ in 0..below(4) {
            let mut line = lines[below(lines.len())].as_bytes().to_vec();
            for _ in 0..below(3) {
                let at = below(line.len());
                line[at] = below(256) as u8;
            }
            bytes.extend(line);
            bytes.push(b'\n');
        }
        bytes.truncate(bytes.len() - below(bytes.len().min(9) + 1));
        let mut client = std::os::unix::net::UnixStream::connect(rig.folder.path().join("socket")).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = client.write_all(&bytes).and_then(|()| client.shutdown(std::net::Shutdown::Write));
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).unwrap();
        let given = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        let answered = answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        assert!(answered >= given, "session {session}: {answered} answers to {given} lines");
    }
    rig.ask(&Order::On);
    rig.ask(&Order::ClearFaults);
    assert_eq!(rig.ask(&Order::State)["powered"], true);
    println!("{sessions} malformed sessions, 0 broken");
}

#[test]
fn clients_that_take_too_long_for_a_line_make_room() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    let control = |rig: &Rig| {
        let faults = Arc::new(Faults::new(Arc::clone(&rig.served) as Arc<dyn Block>));
        let stats = Arc::new(Stats::new(Arc::clone(&faults) as Arc<dyn Block>, Arc::clone(&rig.served)));
        Control {
            served: Arc::clone(&rig.served),
            faults,
            host_faults: HostFaults::default(),
            stats,
            stop: mpsc::channel().0,
        }
    };
    // With much time for a line: one more than the largest number is refused.
    let path = folder.path().join("patient");
    let _patient = ControlServer::start_with(&path, control(&rig), Duration::from_secs(3600)).unwrap();
    let connect = |path: &std::path::Path| std::os::unix::net::UnixStream::connect(path).unwrap();
    let slow: Vec<_> = (0..super::CLIENTS_MAX).map(|_| connect(&path)).collect();
    let mut refused = String::new();
    connect(&path).read_to_string(&mut refused).unwrap();
    assert!(refused.contains("there are 32 clients already"), "{refused}");
    drop(slow);
    while ask(&path, &Order::State).is_err() {}
    // With little: all are disconnected in their time, also within a line.
    let path = folder.path().join("strict");
    let _strict = ControlServer::start_with(&path, control(&rig), Duration::from_millis(500)).unwrap();
    let mut slow: Vec<_> = (0..super::CLIENTS_MAX).map(|_| connect(&path)).collect();
    let _ = slow[0].write_all(b"{\"do\":");
    for client in &mut slow {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    while ask(&path, &Order::State).is_err() {}
}
