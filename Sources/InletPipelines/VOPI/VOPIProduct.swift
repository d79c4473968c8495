internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// `product.json`: what a job made and what the server says of the product, for the shop that takes it up.
struct VOPIProduct: Sendable {
    /// The video that the job was made of.
    struct Source: Sendable, Equatable {
        var name: String
        var key: String
        var size: Int64
        var md5: String?
    }

    static let name = "product.json"
    static let fileName: FilePath.Component = "product.json"

    var job: VOPIJob
    var source: Source?
    var manifest: VOPIManifest
    /// Paths that the job speaks of and did not give.
    var missing: [String]
    /// Kept as the server sends it: transcript, product, platforms.
    var metadata: VOPIValue?

    /// How many files the job speaks of, or has links to.
    var count: Int { max(manifest.expected ?? 0, manifest.entries.count) }

    /// How many files the job speaks of that are not there.
    var absent: Int { max(missing.count, (manifest.expected ?? 0) - manifest.entries.count + missing.count) }

    /// The JSON, the files it names and their bytes. Reads the files for their checksums. Blocks.
    func described(in folder: Folder) throws(SystemError) -> (json: [UInt8], files: [String], bytes: Int64) {
        var files: [VOPIValue] = []
        var (paths, bytes): ([String], Int64) = ([], 0)
        for entry in manifest.entries where !missing.contains(entry.path) {
            let path = FilePath(entry.path)
            guard let name = path.lastComponent else { continue }
            let source = try SourceFile(opening: name, in: folder.folder(path.removingLastComponent()))
            var members: [String: VOPIValue] = [
                "path": .text(entry.path), "kind": .text(entry.frame == nil ? "image" : "frame"),
                "size": .integer(source.opened.size), "sha256": .text(try Self.sha256(source)),
            ]
            members["frame"] = entry.frame.map { .text($0) }
            members["variant"] = entry.variant.map { .text($0) }
            members["version"] = entry.version.map { .text($0) }
            files.append(.object(members))
            paths.append(entry.path)
            bytes += source.opened.size
        }
        return (document(files).json, paths, bytes)
    }

    private func document(_ files: [VOPIValue]) -> VOPIValue {
        var members: [String: VOPIValue] = [
            "job": .text(job.id), "status": .text(job.status.text), "files": .list(files),
            "missing": .list(missing.map { .text($0) }),
            "complete": .boolean(absent == 0),
        ]
        members["expected"] = manifest.expected.map { .integer(Int64($0)) }
        members["createdAt"] = job.createdAt.map { .text($0.rfc3339) }
        members["completedAt"] = job.completedAt.map { .text($0.rfc3339) }
        members["config"] = job.config
        members["metadata"] = metadata
        // Shopify, Amazon and eBay each have a text of their own there.
        members["platforms"] = metadata?["platforms"].unlessEmpty
        if let source {
            var video: [String: VOPIValue] = [
                "name": .text(source.name), "key": .text(source.key), "size": .integer(source.size),
            ]
            video["md5"] = source.md5.map { .text($0) }
            members["video"] = .object(video)
        }
        return .object(members)
    }

    static func sha256(_ source: SourceFile) throws(SystemError) -> String {
        var hash = SHA256()
        var offset: Int64 = 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = try source.read(into: buffer, at: offset)
            if count == 0 { return hash.digest.hex }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
    }
}
