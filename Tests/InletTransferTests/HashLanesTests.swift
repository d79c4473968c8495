import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletTransfer

/// Slices that are hashed side by side.
@Suite(.timeLimit(.minutes(15))) struct HashLanesTests {
    private let lanes = HashLanes(on: BlockingPool(name: "lanes", threads: 1))

    private static let kinds: [Set<Digest.Algorithm>] = [
        [.md5], [.md5, .sha256], [.sha256], [.crc64nvme], [.md5, .crc32c, .xxh128], [.sha1, .c4],
    ]

    /// More than two batches hold, with different checksums and ends.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `slices that are hashed together have the sums of their own bytes`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let directory = try TemporaryDirectory()
        let files = try (0..<3).map { number in
            let bytes = pattern(1_500_000 + 70_000 * number, seed: seed &+ UInt64(number))
            return (bytes: bytes, source: try SourceFile(opening: directory.write(bytes, to: FilePath("\(number)"))))
        }
        let slices = (0..<50).map { number in
            let file = files[number % files.count]
            let start = Int.random(in: 0...file.bytes.count, using: &generator)
            let end = Int.random(in: start...file.bytes.count, using: &generator)
            return (file: file, range: start..<end, kinds: Self.kinds[number % Self.kinds.count])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (file, range, kinds) in slices {
                group.addTask {
                    let sums = try await lanes.sums(
                        kinds, of: file.source, offset: Int64(range.lowerBound), length: Int64(range.count))
                    #expect(sums == SliceHasher.sums(kinds, of: Array(file.bytes[range])), "\(range), \(kinds)")
                }
            }
            try await group.waitForAll()
        }
    }

    /// A terabyte of nothing, which leads the batch, and never ends.
    private func endless(
        _ directory: TemporaryDirectory, began: Switch, each: @escaping @Sendable () -> Void = {}
    ) throws -> Task<ErrorCode?, Never> {
        let source = try SourceFile(opening: sparseFile(directory, size: 1 << 40))
        let lanes = lanes
        return Task {
            do throws(TransferError) {
                _ = try await lanes.sums([.md5], of: source, offset: 0, length: 1 << 40) {
                    began.turnOn()
                    each()
                }
                return nil
            } catch { return error.code }
        }
    }

    @Test func `a slice joins one that is under way, and both go on step by step`() async throws {
        let directory = try TemporaryDirectory()
        let began = Switch()
        let steps = Mutex(0)
        let first = try endless(directory, began: began) { steps.withLock { $0 += 1 } }
        try await eventually("it is under way") { began.isOn }
        let bytes = pattern(3_000_000)
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let seen = Mutex<[Int]>([])
        let sums = try await lanes.sums([.md5, .sha256], of: source, offset: 1, length: 2_999_999) {
            let now = steps.withLock { $0 }
            seen.withLock { $0.append(now) }
        }
        first.cancel()
        #expect(sums == SliceHasher.sums([.md5, .sha256], of: Array(bytes[1...])))
        #expect(await first.value == .cancelled)
        let all = seen.withLock { $0 }
        #expect(all.count > 10)
        #expect(zip(all, all.dropFirst()).allSatisfy { $1 - $0 == 1 }, "\(all)")
    }

    @Test func `a cancelled slice leaves the others to their end`() async throws {
        let directory = try TemporaryDirectory()
        let (began, joined) = (Switch(), Switch())
        let leader = try endless(directory, began: began)
        try await eventually("it is under way") { began.isOn }
        let follower = try endless(directory, began: joined)
        try await eventually("the other is, too") { joined.isOn }
        let bytes = pattern(3_000_000)
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        // With its first bytes, on the leader's thread.
        let sums = try await lanes.sums([.md5], of: source, offset: 0, length: 3_000_000) {
            follower.cancel()
            leader.cancel()
        }
        #expect(sums == SliceHasher.sums([.md5], of: bytes))
        #expect(await follower.value == .cancelled)
        #expect(await leader.value == .cancelled)
    }

    @Test func `a slice that ends too early fails alone`() async throws {
        let directory = try TemporaryDirectory()
        let bytes = pattern(2_000_000)
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        func failure() async -> TransferError? {
            do throws(TransferError) {
                _ = try await lanes.sums([.md5], of: source, offset: 1_000_000, length: 1_000_001)
                return nil
            } catch { return error }
        }
        async let short = failure()
        async let whole = lanes.sums([.md5], of: source, offset: 0, length: 2_000_000)
        #expect(try await whole == SliceHasher.sums([.md5], of: bytes))
        let error = await short
        #expect(error?.code == .sourceChanged)
        #expect(error?.reason.contains("/f") == true)
    }

    @Test func `small contents in one buffer are hashed in one call`() {
        let bytes = pattern(30_000)
        let ranges = [0..<0, 0..<1, 5..<4101, 100..<164, 4000..<30_000] + (0..<30).map { $0 * 100..<$0 * 170 }
        let kinds: Set<Digest.Algorithm> = [.md5, .sha256]
        let found = bytes.withUnsafeBytes { bytes in
            SliceHasher.sums(kinds, ofEach: ranges.map { Array(bytes[$0]) })
        }
        #expect(found == ranges.map { SliceHasher.sums(kinds, of: Array(bytes[$0])) })
    }
}
