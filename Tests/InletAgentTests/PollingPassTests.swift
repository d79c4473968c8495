import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Passes over a real folder, with a clock of the test's own.
@Suite struct PollingPassTests {
    private let folder: TemporaryDirectory
    private let root: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        root = try folder.makeDirectory("root")
    }

    /// All that a pass finds.
    private func pass(_ polling: inout PollPass, _ ignore: IgnoreList = IgnoreList()) -> [String] {
        polling.begin()
        var found: [String] = []
        let modes = WatchModes(["": WatchWay(isPolled: true, reason: "", times: .always)])
        while polling.isLooking {
            switch polling.step(ignore, modes) {
            case .file(let path): found.append("file \(path)")
            case .irregular(let path): found.append("irregular \(path)")
            case .directory(let path): found.append("directory \(path)")
            case .gone(let path): found.append("gone \(path)")
            case .trouble(let path, _): found.append("trouble \(path)")
            case .nothing, .finished: break
            }
        }
        polling.turnEnded(took: .zero, hasMore: false)
        return found.sorted()
    }

    private func age(_ path: FilePath, to time: Double) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: time)], ofItemAtPath: path.string)
    }

    @Test func `a folder whose time is unchanged is not listed again, one whose time changed is`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        try folder.write([1], to: "root/a")
        polling.add("", modified: try touched(root))
        let first = polling.next
        #expect(first == clock.now.advanced(by: .seconds(10)))
        clock.advance(.seconds(10))
        let second = pass(&polling)
        #expect(second == ["file a"])
        clock.advance(.seconds(590))
        let third = pass(&polling)
        #expect(third.isEmpty, "it is not young any more")
        let before = try touched(root)
        try folder.write([1], to: "root/b")
        try folder.makeDirectory("root/sub")
        try setBack(root, after: before)
        let fourth = pass(&polling)
        #expect(fourth == ["directory sub", "file a", "file b"])
    }

    @Test func `a folder whose mtime was set back after a file was added, as rsync does, is listed again`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        try age(root, to: 1e9)
        polling.add("", modified: try touched(root))
        clock.advance(.seconds(600))
        let first = pass(&polling)
        #expect(first.isEmpty)
        let before = try touched(root)
        try folder.write([1], to: "root/a")
        try setBack(root, after: before)
        let second = pass(&polling)
        #expect(second == ["file a"])
    }

    @Test func `a folder that gets a watch is looked at once more, and forgotten then`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        try folder.write([1], to: "root/sub/a")
        for name in ["", "sub", "gone"] as [FilePath] {
            polling.add(name, modified: try touched(root.pushing(name)))
        }
        clock.advance(.seconds(600))
        _ = pass(&polling)
        for name in ["sub", "gone", "never there"] as [FilePath] { polling.handOver(name) }
        var isHandingOver = polling.isHandingOver
        #expect(isHandingOver)
        let last = pass(&polling)
        #expect(last == ["file sub/a"])
        isHandingOver = polling.isHandingOver
        let directories = polling.directories
        #expect(!isHandingOver && directories == [""])
    }

    @Test func `the top of a share is always listed, whatever the times of the folders in it show`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        let sub = try folder.makeDirectory("root/sub")
        for name in ["", "sub"] as [FilePath] { polling.add(name, modified: try touched(root.pushing(name))) }
        clock.advance(.seconds(10))
        _ = steps(&polling)
        let before = try touched(sub)
        try folder.write([1], to: "root/sub/a")
        try setBack(sub, after: before)
        _ = steps(&polling)
        clock.advance(.seconds(600))
        _ = steps(&polling)
        // Of the top its beginning, the name in it and its end, one of `sub`, and the end of all.
        let last = steps(&polling)
        #expect(last == 5)
    }

    /// How many things a pass looks at on a share.
    private func steps(_ polling: inout PollPass) -> Int {
        let modes = WatchModes(["": WatchWay(isPolled: true, reason: "", times: .whenSeen)])
        polling.begin()
        var count = 0
        while polling.isLooking {
            _ = polling.step(IgnoreList(), modes)
            count += 1
        }
        polling.turnEnded(took: .zero, hasMore: false)
        return count
    }

    /// Gives a folder an old mtime, at a moment that its file system's clock can tell from that of `time`.
    private func setBack(_ path: FilePath, after time: Int64) throws {
        repeat { try age(path, to: 1e9) } while try touched(path) == time
    }

    /// The time that tells of names.
    private func touched(_ path: FilePath) throws -> Int64 {
        guard case .directory(let identity) = try FileLook.look(at: path) else { return 0 }
        return identity.touched
    }

    @Test func `folders that went are told once, and nothing is due without a folder`() throws {
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        for name in ["", "gone", "file"] as [FilePath] { polling.add(name, modified: 0) }
        try folder.write([1], to: "root/file")
        let first = pass(&polling)
        #expect(first == ["file file", "gone file", "gone gone"])
        let count = polling.count
        #expect(count == 1)
        polling.remove("")
        let last = pass(&polling)
        let next = polling.next
        #expect(last.isEmpty && next == nil, "nothing is polled any more")
    }

    @Test func `the pause follows what the pass cost, with the looks at what it found`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        polling.add("", modified: 0)
        polling.begin()
        let began = clock.now
        polling.turnEnded(took: .seconds(1), hasMore: true)
        while polling.isLooking { _ = polling.step(IgnoreList(), WatchModes([:])) }
        polling.turnEnded(took: .milliseconds(500), hasMore: true)
        var next = polling.next
        #expect(next == nil, "files of the pass wait to be looked at")
        polling.turnEnded(took: .milliseconds(500), hasMore: false)
        next = polling.next
        let last = polling.lastPass
        #expect(next == clock.now.advanced(by: .seconds(98)) && last == began)
        polling.turnEnded(took: .seconds(100), hasMore: false)
        let unchanged = polling.next
        #expect(unchanged == next, "turns between passes cost nothing")
    }

    @Test func `files that settle for ever do not hold up the next pass`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10), clock: { clock.now })
        polling.add("", modified: 0)
        polling.begin()
        while polling.isLooking { _ = polling.step(IgnoreList(), WatchModes([:])) }
        clock.advance(.seconds(31))
        polling.turnEnded(took: .zero, hasMore: true)
        let next = polling.next
        #expect(next != nil)
    }
}

/// A clock that stands still until it is moved.
private final class ManualClock: Sendable {
    private let time = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { time.withLock(\.self) }
    func advance(_ duration: Duration) { time.withLock { $0 = $0.advanced(by: duration) } }
}
