import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
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
    private func pass(_ polling: inout PollPass, at now: ContinuousClock.Instant = .now) -> [String] {
        polling.begin(at: now)
        var found: [String] = []
        let modes = WatchModes(["": WatchStrategy(isPolled: true, reason: "", times: .always)])
        while polling.isLooking {
            switch polling.step(IgnoreList(), modes, at: now) {
            case .file(let path): found.append("file \(path)")
            case .irregular(let path): found.append("irregular \(path)")
            case .directory(let path): found.append("directory \(path)")
            case .gone(let path): found.append("gone \(path)")
            case .trouble(let path, _): found.append("trouble \(path)")
            case .nothing, .finished: break
            }
        }
        polling.turnEnded(took: .zero, hasMore: false, at: now)
        return found.sorted()
    }

    @Test func `a folder whose time is unchanged is not listed again, one whose time changed is`() throws {
        var clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        try folder.write([1], to: "root/a")
        polling.add("", modified: try touched(root), at: clock.now)
        let first = polling.next
        #expect(first == clock.now.advanced(by: .seconds(10)))
        clock.advance(by: .seconds(10))
        let second = pass(&polling, at: clock.now)
        #expect(second == ["file a"])
        clock.advance(by: .seconds(590))
        let third = pass(&polling, at: clock.now)
        #expect(third.isEmpty, "it is not young any more")
        let before = try touched(root)
        try folder.write([1], to: "root/b")
        try folder.makeDirectory("root/sub")
        try setBack(root, after: before)
        let fourth = pass(&polling, at: clock.now)
        #expect(fourth == ["directory sub", "file a", "file b"])
    }

    @Test func `a folder whose mtime was set back after a file was added, as rsync does, is listed again`() throws {
        var clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        try setTime(root, Date(timeIntervalSince1970: 1e9))
        polling.add("", modified: try touched(root), at: clock.now)
        clock.advance(by: .seconds(600))
        let first = pass(&polling, at: clock.now)
        #expect(first.isEmpty)
        let before = try touched(root)
        try folder.write([1], to: "root/a")
        try setBack(root, after: before)
        let second = pass(&polling, at: clock.now)
        #expect(second == ["file a"])
    }

    @Test func `a folder that gets a watch is looked at once more, and forgotten then`() throws {
        var clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        try folder.write([1], to: "root/sub/a")
        for name in ["", "sub", "gone"] as [FilePath] {
            polling.add(name, modified: try touched(root.pushing(name)), at: clock.now)
        }
        clock.advance(by: .seconds(600))
        _ = pass(&polling, at: clock.now)
        for name in ["sub", "gone", "never there"] as [FilePath] { polling.book.leave(name) }
        var isHandingOver = polling.book.isBeingLeft
        #expect(isHandingOver)
        let last = pass(&polling, at: clock.now)
        #expect(last == ["file sub/a"])
        isHandingOver = polling.book.isBeingLeft
        let directories = polling.book.directories
        #expect(!isHandingOver && directories == [""])
    }

    @Test func `the top of a share is always listed, whatever the times of the folders in it show`() throws {
        var clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        let sub = try folder.makeDirectory("root/sub")
        for name in ["", "sub"] as [FilePath] {
            polling.add(name, modified: try touched(root.pushing(name)), at: clock.now)
        }
        clock.advance(by: .seconds(10))
        _ = steps(&polling, at: clock.now)
        let before = try touched(sub)
        try folder.write([1], to: "root/sub/a")
        try setBack(sub, after: before)
        _ = steps(&polling, at: clock.now)
        clock.advance(by: .seconds(600))
        _ = steps(&polling, at: clock.now)
        // Of the top its beginning, the name in it and its end, one of `sub`, and the end of all.
        let last = steps(&polling, at: clock.now)
        #expect(last == 5)
    }

    /// How many things a pass looks at on a share.
    private func steps(_ polling: inout PollPass, at now: ContinuousClock.Instant) -> Int {
        let modes = WatchModes(["": WatchStrategy(isPolled: true, reason: "", times: .whenSeen)])
        polling.begin(at: now)
        var count = 0
        while polling.isLooking {
            _ = polling.step(IgnoreList(), modes, at: now)
            count += 1
        }
        polling.turnEnded(took: .zero, hasMore: false, at: now)
        return count
    }

    /// Gives a folder an old mtime, at a moment that its file system's clock can tell from that of `time`.
    private func setBack(_ path: FilePath, after time: Int64) throws {
        repeat { try setTime(path, Date(timeIntervalSince1970: 1e9)) } while try touched(path) == time
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
        let count = polling.book.count
        #expect(count == 1)
        polling.book.remove("")
        let last = pass(&polling)
        let next = polling.next
        #expect(last.isEmpty && next == nil, "nothing is polled any more")
    }

    @Test func `the pause follows what the pass cost, with the looks at what it found`() throws {
        let clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        polling.add("", modified: 0, at: clock.now)
        polling.begin(at: clock.now)
        let began = clock.now
        polling.turnEnded(took: .seconds(1), hasMore: true, at: clock.now)
        while polling.isLooking { _ = polling.step(IgnoreList(), WatchModes([:]), at: clock.now) }
        polling.turnEnded(took: .milliseconds(500), hasMore: true, at: clock.now)
        var next = polling.next
        #expect(next == nil, "files of the pass wait to be looked at")
        polling.turnEnded(took: .milliseconds(500), hasMore: false, at: clock.now)
        next = polling.next
        let last = polling.lastPass
        #expect(next == clock.now.advanced(by: .seconds(98)) && last == began)
        polling.turnEnded(took: .seconds(100), hasMore: false, at: clock.now)
        let unchanged = polling.next
        #expect(unchanged == next, "turns between passes cost nothing")
    }

    @Test func `files that settle for ever do not hold up the next pass`() throws {
        var clock = ManualClock()
        var polling = PollPass(root: root, isRecursive: true, least: .seconds(10))
        polling.add("", modified: 0, at: clock.now)
        polling.begin(at: clock.now)
        while polling.isLooking { _ = polling.step(IgnoreList(), WatchModes([:]), at: clock.now) }
        clock.advance(by: .seconds(31))
        polling.turnEnded(took: .zero, hasMore: true, at: clock.now)
        let next = polling.next
        #expect(next != nil)
    }
}

/// A clock that stands still until it is moved.
private struct ManualClock {
    private(set) var now = ContinuousClock.now
    mutating func advance(by duration: Duration) { now = now.advanced(by: duration) }
}

@Suite struct PollingTests {
    @Test func `what is polled is found at the start and later, in old folders and new ones`() async throws {
        let scene = try Scene.polled()
        try scene.drop("early/a")
        try await scene.run { stage in
            try await stage.finished("early/a")
            try scene.drop("b")
            try scene.drop("early/c")
            try scene.drop("new/deep/d")
            for name in ["b", "early/c", "new/deep/d"] as [FilePath] { try await stage.finished(name) }
            try await eventually("four folders are polled") { stage.rootStatus?.polled == 4 }
            try remove(stage.root.appending("new"))
            try await eventually("two are left") { stage.rootStatus?.polled == 2 }
            try await stage.process("new/deep/e")
            #expect(scene.here.record.orders.count == 5)
            #expect(stage.modes == ["poll"])
        }
    }

    @Test func `a file that goes on growing after it was sent is sent again, though its folder is unchanged`()
        async throws
    {
        let scene = try Scene.polled()
        try await scene.run { stage in
            let file = try await stage.process("a", "half").file.fullPath
            try overwrite(file, " and half", .append)
            try await stage.job("a", "whole") { $0.file.identity.size == 13 && $0.file.state == .delivered }
        }
    }

    @Test func `a polled folder that is lost is waited for`() async throws {
        let scene = try Scene.polled()
        try await scene.run { stage in
            try await stage.process("a")
            try remove(stage.root)
            try await eventually("its loss is said") { stage.events.count("watch.lost") >= 1 }
            try await stage.process("b")
        }
    }

    @Test func `a unit in a polled folder is closed with all of its files, after a pass that found no more`()
        async throws
    {
        var scene = try Scene.polled()
        scene.route.unit = .folder
        for name in ["card/a", "card/x/b", "card/y/c"] as [FilePath] { try scene.drop(name) }
        try await scene.run { stage in
            for name in ["card/a", "card/x/b", "card/y/c"] as [FilePath] { try await stage.finished(name) }
            let closed = stage.events.all.compactMap { event -> Int? in
                if case .batchClosed(_, _, _, let files) = event { files } else { nil }
            }
            #expect(closed == [3])
        }
    }

    @Test func `a unit in a polled folder stays open until a pass has followed, however quiet it is`() async throws {
        var scene = try Scene.polled()
        scene.route.unit = .folder
        scene.watch[0].poll = .seconds(3600)
        try scene.drop("card/a")
        try scene.drop("loose")
        try await scene.run { stage in
            try await stage.job("card/a")
            try await stage.finished("loose")
            try await eventually("the status shows it") {
                stage.rootStatus?.unsettled.first?.path.lastComponent == "card"
            }
            #expect(stage.events.count("batch.closed") == 0)
        }
    }
}
