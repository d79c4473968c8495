internal import InletCore
internal import InletTransfer
internal import SystemPackage

/// What a job has to give, each with the file that it becomes: settled when the server is first asked, so that a later
/// process gives the same pictures the same names.
struct VOPIManifest: Sendable, Equatable, Codable {
    struct Entry: Sendable, Equatable, Codable {
        /// Below the job's folder, with `/`; safe whatever the server calls things.
        var path: String
        /// The link without its query: what the entry is known by when links are asked for anew.
        var object: String
        /// The frame it is; nil for a picture.
        var frame: String?
        var variant: String?
        var version: String?
    }

    var entries: [Entry] = []
    /// How many files the job itself speaks of; nil where it does not.
    var expected: Int?

    /// Every link of `downloads` that is not there yet becomes an entry.
    mutating func add(_ downloads: VOPIDownloads) {
        var taken = Set(entries.map { $0.path.lowercased() })
        var known = Set(entries.map(\.identity))
        func add(_ entry: Entry, in folder: String, _ stem: String, _ url: HTTPLink) {
            guard known.insert(entry.identity).inserted else { return }
            var entry = entry
            entry.path = Self.free(folder, stem, url.imageExtension, &taken)
            entries.append(entry)
        }
        for (variant, versions) in downloads.images.sorted(by: { $0.key < $1.key }) {
            let folder = "images/" + VOPIName.safe(variant, or: "product")
            for (version, url) in versions.sorted(by: { $0.key < $1.key }) {
                let entry = Entry(path: "", object: url.redacted, variant: variant, version: version)
                add(entry, in: folder, VOPIName.safe(version, or: "image"), HTTPLink(path: url.path))
            }
        }
        for frame in downloads.frames {
            let entry = Entry(path: "", object: frame.link.redacted, frame: frame.frameID)
            add(entry, in: "frames", VOPIName.safe(frame.frameID, or: "frame"), HTTPLink(path: frame.link.path))
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

extension VOPIManifest.Entry {
    /// What tells it from every other one: one object can be a picture twice.
    var identity: [String] { [object, frame ?? "", variant ?? "", version ?? ""] }
}

/// The path of a link, for its extension.
struct HTTPLink: Sendable {
    var path: String

    private static let known: Set = ["png", "jpg", "jpeg", "webp", "avif", "gif", "tiff", "tif", "bmp", "svg", "mp4"]

    /// `png`, which is what servers make, where it says none that is a picture's.
    var imageExtension: String { pictureEnding ?? "png" }

    /// In lower case; nil where it says none that is a picture's.
    var pictureEnding: String? {
        let name = path.split(separator: "/").last ?? ""
        let ending = name.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last.map {
            $0.lowercased()
        }
        return ending.flatMap { Self.known.contains($0) ? $0 : nil }
    }
}

/// Makes names from a server's text that stay where they are put: one component, no dots in front, no separators,
/// controls or characters that other systems refuse.
enum VOPIName {
    private static let longest = 100

    /// `text` as a name, or `other` where nothing of it can stay.
    static func safe(_ text: String, or other: String) -> String {
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
