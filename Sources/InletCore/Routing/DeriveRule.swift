package import SystemPackage

/// An entry of a route's `derive:`: a small file that a program makes from the original, delivered beside it.
package struct DeriveRule: Sendable, Equatable {
    /// Unique in its route.
    package var name: String
    /// The program and its arguments, run without a shell; `{in}` is the original, `{out}` the file to write.
    package var command: [String]
    /// Extensions of the originals in lower case, without the dot; empty for all files of the route.
    package var extensions: [String]
    /// The suffix to append to the original's key: `.thumb.jpg`.
    package var suffix: String
    package var timeout = DeriveKeys.all.timeout.standard
    /// The most bytes that the program may write.
    package var maxSize = DeriveKeys.all.maxSize.standard

    package init(name: String, command: [String], extensions: [String] = [], suffix: String) {
        self.name = name
        self.command = command
        self.extensions = extensions
        self.suffix = suffix
    }

    package static let input = "{in}"
    package static let output = "{out}"

    /// The arguments of the program for these two files.
    package func arguments(in source: String, out target: String) -> [String] {
        command.map { $0.replacing(Self.input, with: source).replacing(Self.output, with: target) }
    }

    package func isFor(_ path: FilePath) -> Bool {
        let name = FileName(path)
        return extensions.isEmpty || extensions.contains { name.hasExtension($0) }
    }
}

extension DeriveRule {
    /// `thumbnail:` — complete rules: a JPEG of at most 512 by 512 pixels.
    package enum Preset: String, Sendable, CaseIterable {
        /// For pictures; `vips` of libvips-tools.
        case vips
        /// A representative frame of a video.
        case ffmpeg

        package var rule: DeriveRule {
            switch self {
            case .vips:
                DeriveRule(
                    name: "thumbnail",
                    // Transparency becomes white; EXIF, with the location in it, stays with the original.
                    command: [
                        "vips", "thumbnail", input, output + "[Q=80,strip,background=255]", "512", "--height", "512",
                        "--size", "down", "--export-profile", "srgb",
                    ],
                    extensions: ["jpg", "jpeg", "png", "webp", "tif", "tiff", "heic", "heif", "avif", "gif"],
                    suffix: ".thumb.jpg")
            case .ffmpeg:
                // Opens only containers: a playlist under a video's name would make it read other files. Shrinks
                // frames before comparing them: fifty frames of 8K would take gigabytes.
                DeriveRule(
                    name: "thumbnail",
                    command: [
                        "ffmpeg", "-nostdin", "-v", "error", "-y", "-protocol_whitelist", "file",
                        "-format_whitelist", "mov,matroska,mpegts,mpeg,avi,asf,flv,mxf", "-i", input, "-an", "-sn",
                        "-dn", "-vf", smallFrame, "-frames:v", "1", "-update", "1", output,
                    ],
                    extensions: [
                        "mp4", "mov", "m4v", "mkv", "webm", "avi", "mts", "m2ts", "ts", "mpg", "mpeg", "mxf", "wmv",
                        "3gp",
                    ],
                    suffix: ".thumb.jpg")
            }
        }
    }

    /// Square pixels, at most 512 by 512 and never enlarged; the most representative of 50 frames.
    private static let smallFrame =
        "scale=w='trunc(iw*sar)':h=ih,scale=w='min(512,iw)':h='min(512,ih)':force_original_aspect_ratio=decrease,"
        + "setsar=1,thumbnail=50"

    /// The name of the folder, below that of the state directory, for files made from a root's files.
    package static func folder(of root: FilePath) -> String { KeySanitizer.hash(root.bytes) }
}

extension RouteTable {
    /// The rules for a file before its admission; none if it is rejected, or no route takes it.
    ///
    /// - Parameter facts: with those that a candidate's conditions need.
    package func derivations(of arrival: FoundFile, facts: FileProperties) -> [DeriveRule] {
        guard hasDerivations else { return [] }
        guard let route = route(for: arrival.path, size: arrival.identity.size, facts: facts),
            route.objection(to: arrival, facts) == nil
        else { return [] }
        return route.derive.filter { $0.isFor(arrival.path) }
    }
}
