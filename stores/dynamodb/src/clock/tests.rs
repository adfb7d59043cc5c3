use idempotency_core::clock::ManualClock;

use super::*;

const START: i64 = 1_700_000_000 * SECOND;

/// A host and a service whose clock is `ahead` of it, and what the host thinks of that.
struct World {
    host: Arc<ManualClock>,
    clock: ServiceClock,
    ahead: i64,
}

impl World {
    fn new(ahead: i64) -> Self {
        let host = Arc::new(ManualClock::at(Timestamp::from_micros(START as u64)));
        Self { clock: ServiceClock::new(host.clone()), host, ahead }
    }

    fn pass(&self, micros: i64) {
        self.host.advance(Duration::from_micros(micros as u64));
    }

    /// The service's time, which the host cannot see.
    fn truth(&self) -> i64 {
        integer(self.host.now().as_micros()) + self.ahead
    }

    /// An answer whose request takes `there` and whose reply takes `back`.
    fn answer(&self, there: i64, back: i64) {
        let sent = self.host.now();
        self.pass(there);
        let date = self.truth().div_euclid(SECOND);
        self.pass(back);
        self.clock.saw(date, sent, self.host.now());
    }

    fn error(&self) -> i64 {
        (integer(self.clock.read().unwrap().now.as_micros()) - self.truth()).abs()
    }
}

#[test]
fn one_answer_tells_the_time_to_a_second() {
    for ahead in [-600 * SECOND, -1, 0, 1, 777_777, 600 * SECOND] {
        for phase in (0..SECOND).step_by(33_333) {
            for (there, back) in [(0, 0), (1_000, 1_000), (400_000, 400_000), (800_000, 0), (0, 800_000)] {
                let world = World::new(ahead);
                world.pass(phase);
                world.answer(there, back);
                assert!(world.error() <= SECOND, "{} off, {ahead} {phase} {there} {back}", world.error());
            }
        }
    }
}

#[test]
fn many_answers_tell_the_time_to_a_few_milliseconds_more_than_hosts_are_apart() {
    let world = World::new(-600 * SECOND);
    for _ in 0..200 {
        world.answer(2_000, 5_000);
    }
    assert!(world.error() <= 10_000, "{} off", world.error());
    let Seen { ahead, jumps, .. } = world.clock.seen().unwrap();
    assert!((200_000..230_000).contains(&(ahead.most - ahead.least)), "{ahead:?}");
    assert_eq!(jumps, 0);
}

#[test]
fn answers_of_hosts_that_are_a_little_apart_contradict_nothing() {
    let mut world = World::new(0);
    let first = world.clock.read();
    assert!(first.is_none(), "nothing is known before the first answer");
    for step in 0..500 {
        world.ahead = if step % 2 == 0 { 90_000 } else { -90_000 };
        world.answer(1_000, 1_000);
    }
    assert_eq!(world.clock.seen().unwrap().jumps, 0);
}

#[test]
fn a_host_that_was_suspended_learns_it_from_the_next_answer() {
    let mut world = World::new(0);
    world.answer(1_000, 1_000);
    let before = world.clock.read().unwrap();
    world.answer(1_000, 1_000);
    assert!(world.clock.has_kept(&before), "nothing happened");
    world.ahead = 5 * SECOND; // the service's time went on, the host's did not
    assert!(world.error() > 4 * SECOND);
    world.answer(1_000, 1_000);
    assert!(world.error() <= SECOND);
    assert!(!world.clock.has_kept(&before), "what was written by the earlier reading is wrong");
}

#[test]
fn a_slow_answer_teaches_nothing() {
    let world = World::new(0);
    world.answer(SECOND, 1);
    assert!(world.clock.read().is_none());
    world.answer(0, 1_000);
    let known = world.clock.read().unwrap().now;
    world.answer(0, 2 * SECOND);
    assert_eq!(world.clock.read().unwrap().now, known.plus(Duration::from_secs(2)));
}

#[test]
fn an_old_answer_is_asked_for_again() {
    let world = World::new(0);
    world.answer(1_000, 1_000);
    world.pass(300 * SECOND);
    assert!(world.clock.read().is_some());
    world.pass(1);
    assert!(world.clock.read().is_none());
    world.answer(1_000, 1_000);
    assert!(world.clock.read().is_some());
}

#[test]
fn a_clock_that_runs_too_fast_is_corrected_without_a_jump() {
    let mut world = World::new(0);
    for _ in 0..10_000 {
        world.pass(10 * SECOND);
        world.ahead -= 1_000; // a hundred parts in a million
        world.answer(1_000, 1_000);
        assert!(world.error() <= SECOND);
    }
    assert_eq!(world.clock.seen().unwrap().jumps, 0);
}
