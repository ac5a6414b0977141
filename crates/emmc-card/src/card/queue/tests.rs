use emmc_regs::CardKind;
use emmc_regs::command::Command;

use super::*;
use crate::card::partition::Refused;

fn part() -> [u8; EXT_CSD_BYTES] {
    let mut ext_csd = [0; EXT_CSD_BYTES];
    (ext_csd[307], ext_csd[308], ext_csd[15]) = (31, 1, 1);
    ext_csd
}

fn at(micros: u64) -> Instant {
    Instant::START + Nanos::from_micros(micros)
}

fn params(task_id: u8, read: bool, high_priority: bool) -> QueuedTaskParams {
    QueuedTaskParams { blocks: 8, task_id, read, high_priority, ..QueuedTaskParams::default() }
}

/// A queue that has taken these tasks (number, read, high priority, address) at once.
fn queue_of(tasks: &[(u8, bool, bool, u64)]) -> CommandQueue {
    let mut queue = CommandQueue::default();
    for &(task_id, read, high, address) in tasks {
        queue.announce(&part(), params(task_id, read, high)).unwrap();
        queue.queue(address, at(0)).unwrap();
    }
    queue
}

/// The queue status, where every task is ready as soon as the firmware has taken it.
fn status(queue: &mut CommandQueue, now: Instant) -> u32 {
    queue.settle(now, |_, taken| Some(taken));
    queue.status(now)
}

/// CMD46 or CMD47, likewise.
fn start(queue: &mut CommandQueue, task_id: u8, read: bool, now: Instant) -> Result<Task, Illegal> {
    status(queue, now);
    queue.start(task_id, read, now)
}

/// The sequence of tasks for a host that runs each ready task first.
fn order(mut queue: CommandQueue) -> Vec<u8> {
    let mut order = Vec::new();
    let mut now = at(0);
    while !queue.is_empty() {
        now = queue.poll_timeout(now).unwrap_or(now).max(now);
        let ready = status(&mut queue, now);
        assert_ne!(ready, 0, "something is ready by {now:?}");
        let task_id = ready.trailing_zeros() as u8;
        let started = queue.start(task_id, true, now).or_else(|_| queue.start(task_id, false, now));
        assert_eq!(started.unwrap().params.task_id, task_id);
        queue.finish();
        order.push(task_id);
    }
    order
}

#[test]
fn tasks_run_by_priority_then_reads_then_address() {
    assert_eq!(order(queue_of(&[(0, false, false, 0)])), [0]);
    let mixed = [(0, false, false, 0), (1, true, false, 900), (2, true, false, 100), (3, false, false, 500)];
    assert_eq!(order(queue_of(&mixed)), [2, 1, 0, 3], "after 908 the sweep starts again");
    let mut urgent = mixed.to_vec();
    urgent.push((9, false, true, 5));
    assert_eq!(order(queue_of(&urgent))[0], 9);
}

#[test]
fn the_queue_has_exactly_its_depth_of_slots() {
    let tasks: Vec<_> = (0..32).map(|task_id| (task_id, true, false, u64::from(task_id) * 8)).collect();
    assert_eq!(order(queue_of(&tasks)), (0..32).collect::<Vec<u8>>());
    let mut shallow = part();
    shallow[307] = 15;
    let mut queue = CommandQueue::default();
    assert_eq!(queue.announce(&shallow, params(15, true, false)), Ok(()));
    assert_eq!(queue.announce(&shallow, params(16, true, false)), Err(Illegal));
    assert_eq!(depth(&shallow), 16);
}

#[test]
fn a_task_is_ready_after_the_firmware_has_taken_it() {
    let mut queue = queue_of(&[(3, true, false, 0), (4, true, false, 8)]);
    assert_eq!(status(&mut queue, at(4)), 0);
    assert_eq!(start(&mut queue, 3, true, at(4)), Err(Illegal));
    assert_eq!(status(&mut queue, at(5)), 1 << 3);
    assert_eq!(start(&mut queue, 4, true, at(9)), Err(Illegal), "the firmware takes one after the other");
    assert_eq!(status(&mut queue, at(10)), 1 << 3 | 1 << 4, "several are ready at a time");
    assert_eq!(start(&mut queue, 3, false, at(50)), Err(Illegal), "the wrong direction");
    assert_eq!(start(&mut queue, 4, true, at(50)).unwrap().lba, 8);
    assert_eq!(start(&mut queue, 3, true, at(60)), Err(Illegal), "one transfer at a time");
    assert_eq!(queue.finish().map(|task| task.params.task_id), Some(4));
    assert!(start(&mut queue, 3, true, at(60)).is_ok());
}

#[test]
fn reads_of_several_tasks_overlap_in_flash() {
    let mut queue = queue_of(&[(0, true, false, 0), (1, true, false, 8), (2, true, false, 16)]);
    let mut begun = Vec::new();
    queue.settle(at(100), |task, taken| {
        begun.push((task.params.task_id, taken));
        Some(taken + Nanos::from_micros(60))
    });
    assert_eq!(begun, [(0, at(5)), (1, at(10)), (2, at(15))]);
    assert_eq!([64, 65, 70, 75].map(|micros| queue.status(at(micros))), [0, 1, 0b11, 0b111]);
    assert_eq!(queue.poll_timeout(at(66)), Some(at(70)));
}

#[test]
fn a_full_buffer_holds_the_firmware_until_a_task_ends() {
    let mut queue = queue_of(&[(0, true, false, 0), (1, true, false, 8)]);
    let one = |task: &Task, taken: Instant| (task.params.task_id == 0).then_some(taken);
    queue.settle(at(100), one);
    assert_eq!((queue.status(at(100)), queue.poll_timeout(at(100))), (1, None));
    queue.start(0, true, at(100)).unwrap();
    queue.settle(at(200), |_, _| unreachable!("the buffer is still full"));
    queue.finish();
    queue.settle(at(300), |_, _| unreachable!("it looks again from now on"));
    let mut begun = None;
    queue.settle(at(301), |_, taken| {
        begun = Some(taken);
        Some(taken)
    });
    assert_eq!(begun, Some(at(305)));
    assert_eq!(queue.status(at(305)), 2);
}

#[test]
fn commands_in_a_wrong_sequence_change_nothing() {
    let mut queue = queue_of(&[(1, true, false, 0)]);
    assert_eq!(queue.queue(8, at(1)), Err(Illegal), "CMD45 without CMD44");
    assert_eq!(queue.announce(&part(), params(1, true, false)), Err(Illegal), "in use");
    assert_eq!(queue.announce(&part(), QueuedTaskParams { blocks: 0, ..params(2, true, false) }), Err(Illegal));
    assert_eq!(queue.queue(8, at(1)), Err(Illegal), "the refused CMD44 is no CMD44");
    assert_eq!(start(&mut queue, 7, true, at(100)), Err(Illegal), "empty");
    assert_eq!(queue.manage(TaskManagement::DiscardTask { task_id: 7 }), Err(Illegal));
    assert_eq!(queue.manage(TaskManagement::Reserved { operation: 3, task_id: 1 }), Err(Illegal));
    assert_eq!(status(&mut queue, at(100)), 2);
}

#[test]
fn tasks_are_discarded_singly_or_all_together() {
    let mut queue = queue_of(&[(0, true, false, 0), (1, true, false, 8), (2, false, false, 0)]);
    let dropped = |queue: &mut CommandQueue, which| -> Vec<u8> {
        queue.manage(which).unwrap().iter().map(|task| task.params.task_id).collect()
    };
    assert_eq!(dropped(&mut queue, TaskManagement::DiscardTask { task_id: 0 }), [0]);
    assert_eq!(status(&mut queue, at(100)), 0b110, "the others take their turn");
    assert_eq!(dropped(&mut queue, TaskManagement::DiscardQueue), [1, 2]);
    assert!(queue.is_empty());
    assert_eq!((status(&mut queue, at(200)), queue.poll_timeout(at(200))), (0, None));
}

#[test]
fn queue_mode_needs_support_and_excludes_rpmb() {
    let mut ext_csd = part();
    assert!(is_enabled(&ext_csd));
    assert_eq!(check_mode(&ext_csd, true, None), Ok(()));
    assert_eq!(check_mode(&ext_csd, true, Some(0x4b)), Err(Refused));
    ext_csd[179] = 3;
    assert_eq!((check_mode(&ext_csd, true, None), check_mode(&ext_csd, false, None)), (Err(Refused), Ok(())));
    ext_csd[179] = 0;
    ext_csd[308] = 0;
    assert_eq!(check_mode(&ext_csd, true, None), Err(Refused));
}

#[test]
fn queue_mode_refuses_plain_transfers_and_delays_switch() {
    let legal = |index, empty| is_legal(&Command::decode(index, 0, CardKind::Emmc), empty);
    for index in [16, 17, 18, 23, 24, 25, 26, 27, 49] {
        assert!(!legal(index, true), "CMD{index}");
    }
    for index in [5, 6, 8, 28, 35, 36, 38, 42] {
        assert!(legal(index, true) && !legal(index, false), "CMD{index}");
    }
    for index in [0, 7, 12, 13, 44, 45, 46, 47, 48] {
        assert!(legal(index, false), "CMD{index}");
    }
}
