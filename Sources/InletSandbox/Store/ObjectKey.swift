import Foundation
import InletCore

/// The name of an object, known to be safe to keep as a file below the store's folder.
struct ObjectKey: Hashable, Sendable {
    let text: String

    /// Refuses what R2 refuses (empty, over 1,024 bytes) and what a folder cannot hold apart: `.`, `..` and empty
    /// components, NUL.
    init(_ text: String) throws(StoreError) {
        guard !text.isEmpty else { throw .invalidKey("it is empty") }
        guard text.utf8.count <= 1024 else { throw .invalidKey("it has more than 1,024 bytes") }
        guard !text.utf8.contains(0) else { throw .invalidKey("it holds a NUL") }
        for component in text.split(separator: "/", omittingEmptySubsequences: false) {
            guard !component.isEmpty else { throw .invalidKey("it has an empty component") }
            guard component != ".", component != ".." else { throw .invalidKey("it leaves the bucket") }
        }
        self.text = text
    }

    /// The object's file below `objects/`. Components too long for a file name (255 bytes) are shortened and hashed.
    var relativePath: String {
        text.split(separator: "/").map { component in
            component.utf8.count <= 240 ? String(component) : component.prefix(40) + "~" + Self.hash(String(component))
        }.joined(separator: "/")
    }

    /// The file name of the object's record below `records/`.
    var recordName: String { Self.hash(text) + ".json" }

    private static func hash(_ text: String) -> String { SHA256.digest(of: text.utf8).hex }
}
