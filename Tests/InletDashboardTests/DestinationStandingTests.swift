import Testing

@testable import InletCore
@testable import InletDashboard

/// What each destination is doing, and what its files wait for, in words.
@Suite struct DestinationStandingTests {
    private static func limit(_ rate: Int64?, of destination: String? = "store", until: String? = nil) -> LimitReport {
        var status = LimitReport(.init(destination: destination, rate: rate, cause: .configuration))
        status.until = until
        return status
    }

    private static func standing(
        _ state: String = "up", waiting: Int = 0, bytes: Int64 = 0, running: Int = 0, left: Int64 = 0,
        speed: Double = 0,
        isHeld: Bool = false, own: LimitReport? = nil, common: LimitReport? = nil
    ) -> String? {
        DestinationStanding(
            state: state, nextProbe: nil, waiting: waiting, waitingBytes: bytes, running: running, leftBytes: left,
            speed: speed, isHeld: isHeld, own: own, common: common
        ).text
    }

    @Test func `one at its limit says so, and how long the files there need at that rate`() {
        let own = Self.limit(1 << 20)
        let text = Self.standing(waiting: 11, bytes: 230 << 20, running: 1, left: 10 << 20, isHeld: true, own: own)
        #expect(text == "at its limit of 1 MiB/s; 11 files wait, about 4 min")
        // It gets nearly as much as it may.
        #expect(Self.standing(running: 1, speed: 900_000, own: own) == "at its limit of 1 MiB/s")
        #expect(Self.standing(running: 1, speed: 9000, own: own) == "sending 1 file")
    }

    @Test func `the lower one of two limits counts`() {
        let (own, common) = (Self.limit(2 << 20), Self.limit(1 << 20, of: nil))
        #expect(
            Self.standing(running: 2, isHeld: true, own: own, common: common)
                == "at the limit of all destinations, 1 MiB/s")
        let none = Self.limit(0)
        #expect(
            Self.standing(waiting: 1, running: 1, speed: 5, isHeld: true, own: none) == "its limit is 0; 1 file waits")
        #expect(Self.standing(waiting: 1, own: own, common: Self.limit(0, of: nil)) == "its limit is 0; 1 file waits")
    }

    @Test(arguments: [
        ("down", "it is down; 3 files wait"), ("paused", "paused by a person; 3 files wait"),
        ("credentials refused", "it refuses its credentials; 3 files wait"),
        ("asks for time", "it asks for time; 3 files wait"), ("up", "not sending now; 3 files wait"),
        ("not running", "3 files wait"),
    ])
    func `files wait for what the destination's state tells`(_ state: String, _ text: String) {
        #expect(Self.standing(state, waiting: 3) == text)
    }

    @Test func `where nothing waits and nothing runs there is nothing to say`() {
        #expect(Self.standing() == nil && Self.standing("down") == nil)
        #expect(
            Self.standing(waiting: 2, bytes: 100, running: 4, speed: 10) == "sending 4 files; 2 files wait")
    }

    @Test(arguments: [
        (0, "a few seconds"), (12, "about 10 s"), (89, "about 90 s"), (100, "about 2 min"), (5400, "about 2 h"),
        (90_000, "about 25 h"),
        (200_000, "about 2 days"),
    ])
    func `a time is as exact as people plan`(_ seconds: Int, _ text: String) {
        #expect(DestinationStanding.about(.seconds(seconds)) == text)
    }
}
