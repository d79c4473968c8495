import Testing

@testable import InletTransfer

struct UploadBuffersTests {
    /// What so many bodies of one length get, one after the other.
    private static func sizes(_ count: Int, of length: Int64) -> [Int] {
        (0..<count).reduce(into: []) { sizes, _ in
            sizes.append(UploadBuffers.size(for: length, taken: sizes.reduce(0, +)))
        }
    }

    @Test func `eight large bodies at once have a large buffer each`() {
        #expect(Self.sizes(8, of: 8 << 20) == Array(repeating: 512 << 10, count: 8))
    }

    @Test(arguments: [1, 16, 64, 256])
    func `all buffers together stay below 6 MiB and 64 KiB for each body`(count: Int) {
        let sizes = Self.sizes(count, of: .max)
        #expect(sizes.reduce(0, +) <= (6 << 20) + count * (64 << 10))
        #expect(sizes.allSatisfy { $0 >= 64 << 10 })
    }

    @Test(arguments: [(0, 16 << 10), (20_000, 20_000), (300_000, 60 << 10), (1 << 20, 60 << 10)] as [(Int64, Int)])
    func `a small body has what it fills, and libcurl its least`(length: Int64, size: Int) {
        #expect(UploadBuffers.size(for: length, taken: 0) == size)
        #expect(UploadBuffers.size(for: length, taken: 1 << 30) == size)
    }

    @Test func `what is given back can be taken again`() {
        let room = UploadBuffers()
        let first = (0..<20).map { _ in room.take(for: 8 << 20) }
        for size in first { room.giveBack(size) }
        #expect((0..<20).map { _ in room.take(for: 8 << 20) } == first)
    }
}
