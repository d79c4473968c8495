internal import Foundation

/// How much those tests do that are heavy on the machine: a tenth in everyday runs, all of it where `INLET_TESTS` is `full`,
/// as `packaging/check.sh --full` has it.
package enum Load {
    package static let isFull = ProcessInfo.processInfo.environment["INLET_TESTS"] == "full"

    /// Of `full` rounds, files or folders so many.
    package static func of(_ full: Int) -> Int { isFull ? full : (full + 9) / 10 }

    /// Of full lists so many of the first.
    package static func of<Item>(_ full: [Item]) -> [Item] { Array(full.prefix(of(full.count))) }
}
