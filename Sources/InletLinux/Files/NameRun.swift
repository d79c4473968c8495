import Glibc
import SystemPackage

/// Names of one folder on their way from the disk, handed out in the order of their bytes: a folder of a million files has
/// them in the order of a hash, in which every file would touch another page of the journal's indices.
///
/// Only so many are held at once, so that memory does not grow with the folder: a bigger one comes in several such runs.
package struct NameRun: Sendable {
    private struct Item {
        var start: UInt32
        var kind: DirectoryEntry.Kind
    }

    package static let most = 131_072
    /// Usual names of so many files; a quarter of that many of the longest.
    private static let mostBytes = 8 << 20

    private let most: Int
    /// Each with its NUL.
    private var bytes: [CChar] = []
    /// Descending once they are sorted: the next is the last.
    private var items: [Item] = []
    private var isSorted = false

    package init(most: Int = Self.most) { self.most = most }

    package var isFull: Bool { items.count >= most || bytes.count >= Self.mostBytes }

    mutating func add(_ name: UnsafePointer<CChar>, _ kind: DirectoryEntry.Kind) {
        items.append(Item(start: UInt32(bytes.count), kind: kind))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name, count: strlen(name) + 1))
    }

    /// From here on names are handed out.
    package mutating func sort() {
        bytes.withUnsafeBufferPointer { bytes in
            guard let first = bytes.baseAddress else { return }
            items.sort { strcmp(first + Int($0.start), first + Int($1.start)) > 0 }
        }
        isSorted = true
    }

    /// The next name; nil while they are being added, and once when all were handed out.
    package mutating func next() -> DirectoryEntry? {
        guard isSorted else { return nil }
        while let item = items.popLast() {
            let name = bytes.withUnsafeBufferPointer { bytes in
                bytes.baseAddress.flatMap { FilePath.Component(platformString: $0 + Int(item.start)) }
            }
            if let name { return DirectoryEntry(name: name, kind: item.kind) }
        }
        empty()
        return nil
    }

    /// Forgets what was added.
    package mutating func empty() { self = NameRun(most: most) }
}
