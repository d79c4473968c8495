internal import InletCore
package import InletLinux
internal import SystemPackage

/// Finds recordings that no player opens: empty ones, and those whose recorder lost power before it closed them.
///
/// Looks at the headers of MOV, MP4 and MXF, within the budget of `BoundedBytes`; never at pictures and sound
/// themselves. A file of another kind has no fault here unless it is empty.
package enum ClipCheck {
    /// The fault of a file without bytes.
    package static let empty = "it is empty"

    /// Whether the headers of a file of that name could show a fault: those of most pictures cannot.
    package static func reads(named name: String) -> Bool {
        NumberedRun.isRecording(named: name)
            && !plainEndings.contains(name.split(separator: ".").last.map { $0.lowercased() } ?? "")
    }

    private static let plainEndings: Set<String> = [
        "jpg", "jpeg", "thm", "png", "tif", "tiff", "dng", "nef", "arw", "cr2", "raf", "orf", "rw2", "pef", "srw",
        "wav",
    ]

    /// Why the file does not open, for people; nil where nothing is wrong as far as its headers say. Blocks.
    ///
    /// - Throws: if the file cannot be read.
    package static func fault(at file: RootedPath) throws(SystemError) -> String? {
        try fault(of: try SourceFile(opening: file))
    }

    package static func fault(of source: SourceFile) throws(SystemError) -> String? {
        try fault(BoundedBytes(source), named: source.path.lastComponent.map { DisplayText.escape($0.bytes) } ?? "")
    }

    static func fault(_ bytes: BoundedBytes, named name: String) throws(SystemError) -> String? {
        let ending = name.split(separator: ".").last.map { $0.lowercased() } ?? ""
        if bytes.size == 0 { return NumberedRun.isRecording(named: name) ? empty : nil }
        let head = try bytes.read(upTo: 16, at: 0)
        if ending == "mxf" || MXFFile.begins(head) { return try MXFFile.fault(bytes) }
        if BoxType.opensFile(head) { return try fault(movie: bytes) }
        return movieEndings.contains(ending) ? "its beginning is not that of a MOV or MP4 file" : nil
    }

    private static let movieEndings: Set<String> = ["mov", "mp4", "m4v", "qt", "insv", "360", "crm"]

    /// A recorder writes the index (`moov`) last.
    private static func fault(movie bytes: BoundedBytes) throws(SystemError) -> String? {
        var walk = BoxIterator(bytes, in: 0..<bytes.size)
        var hasIndex = false
        while let box = try walk.next() {
            switch box.type {
            case "mdat", "moov", "moof":
                if box.missing > 0 { return "it is cut off: \(ByteText.format(box.missing)) short" }
                hasIndex = hasIndex || box.type == "moov"
            // A picture's index.
            case "meta": hasIndex = true
            default: continue
            }
        }
        return hasIndex || bytes.isSpent ? nil : "it has no index (moov): the recording was not closed"
    }
}
