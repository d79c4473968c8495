internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// A job's results, each with the file that it becomes. They are fixed when the server is first asked, so that a later
/// process gives the same pictures the same names.
package struct VOPIManifest: Sendable, Equatable, Codable {
    struct Entry: Sendable, Equatable, Codable {
        /// Below the job's folder, with `/`; safe whatever the server calls things.
        var path: String
        /// The link without its query: what the entry is known by when links are asked for anew.
        var object: String
        /// The frame it is; nil for a picture.
        var frame: String?
        var variant: String?
        var version: String?

        /// Distinguishes it from every other one: one object can be a picture twice.
        var identity: [String] { [object, frame ?? "", variant ?? "", version ?? ""] }
    }

    var entries: [Entry] = []
    /// How many files the job itself speaks of; nil where it does not.
    var expected: Int?

    /// Every link of `downloads` that is not there yet becomes an entry.
    mutating func add(_ downloads: VOPIDownloads) {
        var taken = Set(entries.map { $0.path.lowercased() })
        var known = Set(entries.map(\.identity))
        for (found, link) in downloads.entries where known.insert(found.identity).inserted {
            var entry = found
            let (folder, stem) =
                if let frame = entry.frame {
                    ("frames", Self.safeName(frame, or: "frame"))
                } else {
                    (
                        "images/" + Self.safeName(entry.variant ?? "", or: "product"),
                        Self.safeName(entry.version ?? "", or: "image")
                    )
                }
            // PNG is what servers make.
            entry.path = Self.free(folder, stem, link.pictureEnding ?? "png", &taken)
            entries.append(entry)
        }
    }

    /// Takes in what the job says that it made, beside the links to it. A picture that it no longer speaks of, and that has
    /// no link, was deleted at the server.
    mutating func settle(_ result: VOPIResult, _ downloads: VOPIDownloads) {
        expected = result.count
        entries.removeAll { entry in
            guard let variant = entry.variant, let version = entry.version else { return false }
            return result.commercialImages[variant]?[version] == nil && downloads.images[variant]?[version] == nil
        }
    }

    /// `folder/stem.ext`, or with `_2` and so on; names that differ in case only do not live everywhere.
    private static func free(_ folder: String, _ stem: String, _ ending: String, _ taken: inout Set<String>) -> String {
        var path = "\(folder)/\(stem).\(ending)"
        var number = 2
        while !taken.insert(path.lowercased()).inserted {
            path = "\(folder)/\(stem)_\(number).\(ending)"
            number += 1
        }
        return path
    }
}

extension VOPIDownloads {
    /// Each link with what it is of, which has no path yet: pictures by their names, then frames.
    var entries: [(entry: VOPIManifest.Entry, link: HTTPURL)] {
        let pictures = images.sorted { $0.key < $1.key }.flatMap { variant, versions in
            versions.sorted { $0.key < $1.key }.map { version, link in
                (VOPIManifest.Entry(path: "", object: link.redacted, variant: variant, version: version), link)
            }
        }
        return pictures
            + frames.map { (VOPIManifest.Entry(path: "", object: $0.link.redacted, frame: $0.frameID), $0.link) }
    }
}

extension HTTPURL {
    /// The extension of its path, in lower case; nil where that says none that is a picture's.
    var pictureEnding: String? {
        let name = path.split(separator: "/").last ?? ""
        let ending = name.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last.map {
            $0.lowercased()
        }
        return ending.flatMap { MediaFormat(ending: $0) == nil ? nil : $0 }
    }
}

/// Names from a server's text that stay where they are put: one component, no dots in front, no separators, controls or
/// characters that other systems refuse.
extension VOPIManifest {
    private static let longest = 100

    /// `text` as a name, or `other` where nothing of it can stay.
    static func safeName(_ text: String, or other: String) -> String {
        var name = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(2 * longest) {
            name.append(isHarmless(scalar) ? scalar : "_")
        }
        while let first = name.first, first == "." || first == "-" { name.removeFirst() }
        while String(name).utf8.count > longest || name.last == "." { name.removeLast() }
        let result = String(name)
        guard !result.isEmpty, result.contains(where: { $0 != "_" }) else { return other }
        // The names of DOS devices are nobody's files on a share.
        return devices.contains(result.lowercased()) ? "_" + result : result
    }

    private static let devices: Set<String> = Set(
        ["con", "prn", "aux", "nul"] + (1...9).flatMap { ["com\($0)", "lpt\($0)"] })

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".": true
        default: scalar.value > 0x7F && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
        }
    }
}

/// `product.json`: what a job made and what the server says of the product, for the shop that takes it up.
package struct VOPIProduct: Sendable {
    /// The video that the job was made of.
    package typealias Source = (name: String, key: String, size: Int64, md5: String?)

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
        var files: [JSONValue] = []
        var (paths, bytes): ([String], Int64) = ([], 0)
        for entry in manifest.entries where !missing.contains(entry.path) {
            let path = FilePath(entry.path)
            guard let name = path.lastComponent else { continue }
            let source = try SourceFile(opening: name, in: folder.folder(path.removingLastComponent()))
            let sha256 = try Self.sha256(source)
            files.append(
                .members([
                    "path": .string(entry.path), "kind": .string(entry.frame == nil ? "image" : "frame"),
                    "size": .number(String(source.opened.size)), "sha256": .string(sha256),
                    "frame": entry.frame.map { .string($0) }, "variant": entry.variant.map { .string($0) },
                    "version": entry.version.map { .string($0) },
                ]))
            paths.append(entry.path)
            bytes += source.opened.size
        }
        return (document(files).bytes, paths, bytes)
    }

    private func document(_ files: [JSONValue]) -> JSONValue {
        let video = source.map { source in
            JSONValue.members([
                "name": .string(source.name), "key": .string(source.key), "size": .number(String(source.size)),
                "md5": source.md5.map { .string($0) },
            ])
        }
        return .members([
            "job": .string(job.id), "status": .string(job.status.text), "files": .array(files),
            "missing": .array(missing.map { .string($0) }), "complete": .boolean(absent == 0),
            "expected": manifest.expected.map { JSONValue($0) },
            "createdAt": job.createdAt.map { .string($0.rfc3339) },
            "completedAt": job.completedAt.map { .string($0.rfc3339) }, "config": job.config?.plain,
            "metadata": metadata?.plain,
            // Shopify, Amazon and eBay each have a text of their own there.
            "platforms": metadata?["platforms"].unlessEmpty?.plain, "video": video,
        ])
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

/// The format of a job's file, by its name and by its first bytes. Something other than the store, such as a proxy, may
/// answer with status 200 and a page.
enum MediaFormat: String, Sendable {
    case png, jpeg, gif, webp, bmp, tiff, avif, svg, mp4

    /// - Parameter ending: of a name, in lower case and without its dot.
    init?(ending: String) {
        switch ending {
        case "jpg": self = .jpeg
        case "tif": self = .tiff
        default: self.init(rawValue: ending)
        }
    }

    /// - Parameter head: the first bytes of a file.
    init?(head: [UInt8]) {
        func has(_ bytes: some Sequence<UInt8>, at offset: Int = 0) -> Bool {
            head.dropFirst(offset).starts(with: bytes)
        }
        if has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if has([0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if has("GIF87a".utf8) || has("GIF89a".utf8) {
            self = .gif
        } else if has("RIFF".utf8), has("WEBP".utf8, at: 8) {
            self = .webp
        } else if has("BM".utf8) {
            self = .bmp
        } else if [[0x49, 0x49, 0x2A, 0], [0x49, 0x49, 0x2B, 0], [0x4D, 0x4D, 0, 0x2A], [0x4D, 0x4D, 0, 0x2B]]
            .contains(where: { has($0) })
        {
            self = .tiff
        } else if has("ftyp".utf8, at: 4) {
            self = ["avif", "avis", "mif1"].contains { has($0.utf8, at: 8) } ? .avif : .mp4
        } else if ["moov", "mdat", "wide", "free", "skip"].contains(where: { has($0.utf8, at: 4) }) {
            self = .mp4
        } else if Self.isSVG(head) {
            self = .svg
        } else {
            return nil
        }
    }

    /// The root of an SVG may stand behind a declaration, comments and a document type.
    private static func isSVG(_ head: [UInt8]) -> Bool {
        let text = String(decoding: head, as: UTF8.self).lowercased()
        return text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }.hasPrefix("<") && text.contains("<svg")
            && !text.contains("<html")
    }

    /// Why what was fetched is not the file of that name; nil where it is.
    ///
    /// - Parameter ending: nil where the server gave the name none that says what it is: any picture will do then.
    static func objection(to fetched: DownloadHead, ending: String?) -> String? {
        if fetched.bytes.isEmpty { return "it is empty" }
        let (named, found) = (ending.flatMap { MediaFormat(ending: $0) }, MediaFormat(head: fetched.bytes))
        if let type = fetched.type, !isPlausible(type, found) { return "it came as '\(type)', which is no picture" }
        guard let found else { return "its first bytes are those of no picture" }
        // A server may name its pictures wrongly: what a checksum proves to be the store's is nobody else's answer.
        guard let named, named != found, !fetched.isProved else { return nil }
        return "its first bytes are those of a \(found.rawValue) file"
    }

    private static func isPlausible(_ type: String, _ found: MediaFormat?) -> Bool {
        if type.hasPrefix("image/") || type.hasPrefix("video/") || type.hasSuffix("/octet-stream") { return true }
        return found == .svg && ["text/xml", "application/xml", "text/plain"].contains(type)
    }
}
