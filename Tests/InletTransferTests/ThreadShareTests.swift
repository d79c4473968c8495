import Testing

@testable import InletTransfer

/// Which thread of a client takes a request.
struct ThreadShareTests {
    @Test(arguments: [
        (32, 1, [32]), (32, 2, [28, 4]), (32, 4, [20, 4, 4, 4]), (64, 2, [56, 8]), (16, 2, [14, 2]), (8, 2, [7, 1]),
        (7, 2, [4, 3]), (4, 2, [2, 2]), (4, 4, [1, 1, 1, 1]), (2, 2, [1, 1]), (1, 1, [1]),
    ]) func `the first thread has most of the connections`(_ connections: Int, _ threads: Int, _ shares: [Int]) {
        #expect(TransferThreads.shares(of: connections, among: threads) == shares)
        #expect(shares.reduce(0, +) == connections)
    }

    private static let small: Int64 = 64 << 10
    private static let middle: Int64 = small + 1
    private static let large: Int64 = 1 << 20 + 1

    /// Loads of two threads with 28 and 4 connections, the length of a body, and the thread that it goes to.
    @Test(
        arguments: [
            // Small ones share the wake-ups of the first as long as it has a connection, whoever else is idle.
            ([0, 0], small, 0), ([27, 0], small, 0), ([27, 0], 0, 0), ([28, 0], small, 1), ([28, 3], 0, 1),
            // Others go where less is under way.
            ([0, 0], middle, 0), ([1, 0], middle, 1), ([1, 1], middle, 0), ([3, 2], middle, 1), ([5, 4], middle, 0),
            ([0, 0], large, 0), ([1, 0], large, 1), ([4, 2], large, 1),
            // Large ones leave an eighth of the connections, and at least one, to the others.
            ([4, 3], large, 0), ([25, 3], large, 1), ([25, 2], large, 1), ([24, 3], middle, 1), ([28, 3], middle, 1),
            // All are busy: the shortest queue for its connections.
            ([28, 4], small, 0), ([29, 4], small, 1), ([56, 7], small, 1), ([56, 8], small, 0), ([55, 8], large, 0),
            ([25, 4], large, 0), ([28, 3], large, 1),
        ] as [([Int], Int64, Int)])
    func `a request goes to the thread that has room for it`(_ loads: [Int], _ length: Int64, _ expected: Int) throws {
        let boxes = zip(loads, [28, 4]).map { (load: $0, share: $1) }
        #expect(TransferThreads.choice(among: boxes, length: length) == expected)
    }

    @Test func `without a thread there is none to choose`() {
        #expect(TransferThreads.choice(among: [], length: 1) == nil)
    }
}
