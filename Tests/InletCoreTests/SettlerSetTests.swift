import InletCore
import SystemPackage
import Testing

/// Files that wait for others before they are complete.
struct SettlerSetTests {
    private static let start = ContinuousClock.now
    private static let epoch = WallTime(milliseconds: 1_800_000_000_000)

    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }
    private func wall(_ seconds: Double) -> WallTime { Self.epoch + .seconds(seconds) }

    /// A file last written at `seconds`.
    private func identity(_ seconds: Double) -> FileIdentity {
        let time = wall(seconds).milliseconds * 1_000_000
        return FileIdentity(size: 1, modified: time, changed: time, inode: 1, device: 1)
    }

    @Test func `a file that is bound to others is complete after their quiet time, by sight or by its own times`() {
        for (written, complete) in [(0.0, 10.0), (-4.0, 6.0), (-60.0, 1.0)] {
            var settler = Settler(settle: .seconds(1))
            #expect(settler.observe("a", at: at(0)) == true)
            #expect(settler.due(at: at(1)) == ["a"])
            let identity = identity(written)
            let look = Settler.Look.file(identity, busy: false, quiet: .seconds(10), why: "sidecars")
            let verdict = settler.judge("a", look, at: at(1), wall: wall(1))
            if complete <= 1 {
                #expect(verdict == .settled(identity))
                continue
            }
            #expect(verdict == .waiting && settler.oldest().map(\.why) == ["sidecars"])
            #expect(settler.nextDeadline == at(complete) && settler.due(at: at(complete)) == ["a"])
            #expect(settler.judge("a", look, at: at(complete), wall: wall(complete)) == .settled(identity))
        }
    }

    @Test func `a file that waits for others is woken by them, and its quiet time goes on`() {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.observe("a", at: at(0)) == true)
        // Not looked at yet: nothing to wake.
        settler.wake("a", at: at(0.5))
        #expect(settler.due(at: at(0.5)).isEmpty)
        #expect(settler.due(at: at(1)) == ["a"])
        #expect(settler.judge("a", .waiting(for: .seconds(30), why: "b"), at: at(1), wall: wall(1)) == .waiting)
        #expect(settler.nextDeadline == at(31))
        settler.wake("a", at: at(2))
        #expect(settler.due(at: at(2)) == ["a"])
        let verdict = settler.judge("a", .file(identity(0), busy: false), at: at(2), wall: wall(2))
        #expect(verdict == .settled(identity(0)))
        settler.wake("a", at: at(3))
        #expect(settler.count == 0)
    }

    @Test func `a file takes its companion's place where there is no room, so that companions never keep it out`() {
        var settler = Settler(settle: .seconds(1), places: Settler.Places(settling: 2))
        for name in ["a.xmp", "b.xmp"] as [FilePath] {
            #expect(settler.observe(name, at: at(0)) == true)
        }
        #expect(settler.due(at: at(1)).count == 2)
        #expect(settler.wake("a.mp4", for: "a.xmp", at: at(1)) == false)
        #expect(settler.isTracked("a.mp4") && !settler.isTracked("a.xmp") && settler.isTracked("b.xmp"))
        #expect(settler.due(at: at(1)) == ["a.mp4"])
        // What was handed out and has lost its place is nothing to judge.
        let look = Settler.Look.waiting(for: .seconds(10), why: "its file")
        #expect(settler.judge("a.xmp", look, at: at(1), wall: wall(1)) == .dropped)
        #expect(
            settler.judge("a.mp4", .file(identity(0), busy: false), at: at(1), wall: wall(1)) == .settled(identity(0)))
        #expect(settler.wake("b.mp4", for: "b.xmp", at: at(2)) == true)
        #expect(settler.isTracked("b.mp4") && settler.isTracked("b.xmp"))
    }

    @Test func `folders with files that are not complete are known`() {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.tracked(below: ["gigs/X"]).isEmpty)
        for path in ["gigs/X/a", "gigs/Z/raw/b", "gigs/Z/c"] as [FilePath] {
            #expect(settler.observe(path, at: at(0)) == true)
        }
        let folders: Set<FilePath> = ["gigs", "gigs/X", "gigs/X/b", "gigs/Y", "gigs/Z", "gigs/Z/raw", "gig"]
        #expect(settler.tracked(below: folders) == ["gigs", "gigs/X", "gigs/Z", "gigs/Z/raw"])
        #expect(settler.tracked(below: []).isEmpty)
    }
}
