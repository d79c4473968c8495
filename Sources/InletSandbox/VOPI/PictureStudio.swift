import Foundation
import InletCore
import SystemPackage

/// Makes a job's pictures: each is a mosaic of the video's bytes and names the video's SHA-256, so that a look at one
/// tells which video it is of.
struct PictureStudio: Sendable {
    private static let (columns, rows) = (48, 36)

    let store: ObjectStore

    /// The pictures of `job` from `video`, kept below `jobs/<id>/`.
    func make(_ video: StoredObject, for job: VOPIJob, _ rules: VOPIRules) throws -> [VOPISandbox.Picture] {
        let places = PictureNames(job: job, rules).places
        return try places.enumerated().map { index, name in
            let bytes = try Self.picture(of: video, number: index)
            var file = try IncomingFile(in: store.folders.incoming)
            try bytes.withUnsafeBytes { try file.write($0) }
            let object = try store.keepSingle(
                try ObjectKey("jobs/\(job.id)/\(name.file)"), contentType: "image/png", file)
            return VOPISandbox.Picture(place: name.place, object: object, source: video.sha256)
        }
    }

    /// Takes every row from another place of the video; the number shifts the colours, so that no two are equal.
    private static func picture(of video: StoredObject, number: Int) throws -> [UInt8] {
        let file = try FileDescriptor.open(video.path, .readOnly, options: .closeOnExec)
        // It was only read.
        defer { try? file.close() }
        let rows = try (0..<rows).map { index in
            let offset = video.size * Int64(index) / Int64(Self.rows)
            var row = [UInt8](repeating: UInt8(truncatingIfNeeded: index * 7), count: columns * 3)
            _ = try row.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
            return row.map { $0 &+ UInt8(truncatingIfNeeded: number * 17) }
        }
        return PNG.encode(rows: rows, note: ("Source", "\(video.sha256.hex) \(number)"))
    }
}

/// What a job's pictures are called, and where they are kept.
struct PictureNames {
    typealias Place = VOPISandbox.Picture.Place

    /// Each with its file below the job's folder.
    let places: [(place: Place, file: String)]

    init(job: VOPIJob, _ rules: VOPIRules) {
        let stack = job.config["stack"]?["stackId"]?.text
        places =
            rules.names == .hostile
            ? Self.hostile : Self.frames(rules.frames) + Self.images(job.config, stack, frames: rules.frames)
    }

    private static func frames(_ count: Int) -> [(Place, String)] {
        (1...max(count, 1)).prefix(count).map { number in
            let id = "frame_" + String(repeating: "0", count: max(0, 5 - String(number).count)) + String(number)
            return (.frame(id: id), "frames/hero_\(id)_t\(number).00.png")
        }
    }

    private static func images(_ config: SandboxJSON, _ stack: String?, frames: Int) -> [(Place, String)] {
        if stack == "frames_only" { return [] }
        if stack == "full_gemini" {
            return Self.frames(frames).flatMap { frame -> [(Place, String)] in
                guard case .frame(let id) = frame.0 else { return [] }
                return ["white-studio", "lifestyle"].map {
                    (.image(key: id, version: $0), "commercial/\(id)_\($0).png")
                }
            }
        }
        return (config["commercialVersions"]?.items ?? []).compactMap(\.text).map {
            (.image(key: "hero", version: $0), "commercial/hero_\($0).png")
        }
    }

    /// Names that a client must not take for paths. The stack `full_gemini` and its like make such keys of file names.
    private static let hostile: [(Place, String)] = {
        let names = [
            "../../../escape", "../../../escape", "/etc/escape", "", ".", "..", "a/b", "a\\b", "a\u{0}b",
            "a\nb\u{1B}[2J",
            ".hidden", "product.json", String(repeating: "x", count: 300), "e\u{301}", "\u{E9}", "NAME", "name",
        ]
        let frames = names.enumerated().map { (Place.frame(id: $1), "frames/\($0).png") }
        let images = names.enumerated().flatMap { index, name in
            ["transparent", "../../up", ""].enumerated().map { version in
                (Place.image(key: name, version: version.element), "commercial/\(index)_\(version.offset).png")
            }
        }
        return frames + images
    }()
}
