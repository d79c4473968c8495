package import InletCore
package import SystemPackage

/// A stored object, for tests and the demo, and as one JSON file below `records/` holds it.
package struct StoredObject: Codable, Sendable, Hashable {
    package var key: String
    /// Length in bytes.
    package var size: Int64
    /// The checksum of the whole content, computed by the sandbox from the bytes it stored.
    package var md5: Digest
    package var sha256: Digest
    /// As S3 gives it, with its quotes: the MD5, or for N parts the MD5 of the parts' MD5s and `-N`.
    package var etag: String
    package var contentType: String
    /// Other fields that the client gave with it, by their lower-case names: `cache-control`, `x-amz-meta-mtime` …
    package var attributes: [String: String]
    /// When it became visible.
    package var modified: WallTime
    var place: String
    /// How many times this key was completed or put; more than 1 means that a client sent it again.
    package var versions: Int

    /// The file that holds the bytes.
    package var path: FilePath { FilePath(place) }
}

/// An upload that was created and is not yet completed or aborted: `upload.json` in its folder.
struct UploadRecord: Codable, Sendable {
    var id: String
    var key: String
    var contentType: String
    var partCount: Int
    var attributes: [String: String]
    var created: WallTime
}

/// One stored part of an open upload.
struct StoredPart: Sendable {
    var number: Int
    /// As the client got it, without quotes; a fault may have changed it from the MD5.
    var etag: String
    var size: Int64
    var modified: WallTime
    var file: FilePath
}

/// A part as the client lists it when it completes an upload.
struct ListedPart: Sendable {
    var number: Int
    var etag: String

    /// The bare value; clients send it with and without quotes, or as a weak tag.
    var bareETag: String {
        let value = etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...]
        return value.filter { $0 != "\"" }.lowercased()
    }
}

/// The name of an object, safe as a file below the store's folder.
struct ObjectKey: Hashable, Sendable {
    let text: String

    /// Refuses keys that R2 refuses (empty, over 1,024 bytes) and keys that a folder cannot distinguish: `.`, `..` and
    /// empty components, NUL.
    init(_ text: String) throws(SandboxRefusal) {
        guard !text.isEmpty else { throw .invalidKey("it is empty") }
        guard text.utf8.count <= 1024 else { throw .invalidKey("it has more than 1,024 bytes") }
        guard !text.utf8.contains(0) else { throw .invalidKey("it holds a NUL") }
        for component in text.split(separator: "/", omittingEmptySubsequences: false) {
            guard !component.isEmpty else { throw .invalidKey("it has an empty component") }
            guard component != ".", component != ".." else { throw .invalidKey("it leaves the bucket") }
        }
        self.text = text
    }

    // Stores compare bytes; two Strings are also equal where only their normal forms differ.
    static func == (one: ObjectKey, other: ObjectKey) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
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
