import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletLinux

/// How many files are read at once from one disk (`readers:`).
@Suite struct DiskTurnsTests {
    /// A disk of two partitions, as sysfs(5) shows it.
    private static func disk(rotating: Bool) throws -> (folder: TemporaryDirectory, numbers: [UInt64]) {
        let folder = try TemporaryDirectory()
        let disk: FilePath = "devices/block/sda"
        try folder.write("8:0\n".utf8, to: disk.appending("dev"))
        try folder.write((rotating ? "1\n" : "0\n").utf8, to: disk.pushing("queue/rotational"))
        try folder.makeDirectory("dev/block")
        for part in 1...2 {
            try folder.write("8:\(part)\n".utf8, to: disk.pushing(FilePath("sda\(part)/dev")))
            try folder.write("\(part)\n".utf8, to: disk.pushing(FilePath("sda\(part)/partition")))
            try FileManager.default.createSymbolicLink(
                atPath: folder.path.appending("dev/block/8:\(part)").string,
                withDestinationPath: folder.path.pushing(disk).appending("sda\(part)").string)
        }
        return (folder, [UInt64(8 << 8 | 1), UInt64(8 << 8 | 2)])
    }

    @Test(
        arguments: [
            (true, ReaderRule.auto, 1), (false, .auto, nil), (true, .two, 2), (false, .one, 1),
        ] as [(Bool, ReaderRule, Int?)])
    func `a disk that turns is read by one, unless the configuration says otherwise`(
        _ isRotating: Bool, _ rule: ReaderRule, _ count: Int?
    ) throws {
        let (folder, numbers) = try Self.disk(rotating: isRotating)
        let readers = DiskReaders(sysfs: folder.path)
        let turns = readers.turns(of: numbers[0], rule)
        #expect((turns == nil) == (count == nil))
        // Both partitions are one disk.
        #expect(readers.turns(of: numbers[1], rule) === turns)
        guard let turns, let count else { return }
        #expect(most(turns, count) == count)
    }

    /// The most bodies that run at once; the first ones wait for each other.
    private func most(_ turns: DiskTurns, _ count: Int) -> Int {
        let running = Mutex((now: 0, most: 0))
        let gate = DispatchSemaphore(value: 0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            turns.take {
                let now = running.withLock { running in
                    running.now += 1
                    running.most = max(running.most, running.now)
                    return running.now
                }
                if now == count { for _ in 0..<8 { gate.signal() } }
                gate.wait()
                running.withLock { $0.now -= 1 }
            }
        }
        return running.withLock(\.most)
    }

    @Test func `a copy waits for its turn, and what is sent slowly meanwhile holds none`() async throws {
        let folder = try TemporaryDirectory()
        let turns = DiskTurns(1)
        try folder.write(Data(repeating: 7, count: 20 << 20), to: "a.bin")
        let source = try SourceFile(opening: RootedPath(folder.path, "a.bin"), turns: { _ in turns })
        let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let holder = Thread {
            turns.take {
                begun.signal()
                end.wait()
            }
        }
        holder.start()
        begun.wait()
        let copied = Mutex<Int64>(0)
        let done = DispatchSemaphore(value: 0)
        let copier = Thread {
            _ = try? FileCopy.copy(
                source, toTemporaryIn: folder.path, name: "copy", isCancelled: { false },
                progress: { now in copied.withLock { $0 = now } })
            done.signal()
        }
        copier.start()
        #expect(done.wait(timeout: .now() + 0.2) == .timedOut && copied.withLock(\.self) == 0)
        end.signal()
        done.wait()
        #expect(copied.withLock(\.self) == 20 << 20)
        // Nobody holds it now, although the source is open.
        turns.take {}
    }
}
