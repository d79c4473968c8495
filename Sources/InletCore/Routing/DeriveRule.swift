package import SystemPackage

/// One entry of a route's `derive:` — a small file that a program makes of the original, delivered beside it.
package struct DeriveRule: Sendable, Equatable {
    /// Unique in its route.
    package var name: String
    /// The program and its arguments; `{in}` stands for the original, `{out}` for the file to be made. No shell sees them.
    package var command: [String]
    /// Lower case, without the dot: the files it is for; empty = all of the route.
    package var extensions: [String]
    /// What the original's key is followed by: `.thumb.jpg`.
    package var suffix: String
    package var timeout = DeriveKeys.all.timeout.standard
    /// Bytes that the program may write.
    package var maxSize = DeriveKeys.all.maxSize.standard

    package init(name: String, command: [String], extensions: [String] = [], suffix: String) {
        self.name = name
        self.command = command
        self.extensions = extensions
        self.suffix = suffix
    }

    package static let input = "{in}"
    package static let output = "{out}"

    /// The program's arguments for these two files.
    package func arguments(in source: String, out target: String) -> [String] {
        command.map { $0.replacing(Self.input, with: source).replacing(Self.output, with: target) }
    }

    package func isFor(_ path: FilePath) -> Bool {
        let name = FileName(path)
        return extensions.isEmpty || extensions.contains { name.hasExtension($0) }
    }
}

extension DeriveRule {
    /// `thumbnail:` — rules that need nothing else: at most 512 by 512, as JPEG.
    package enum Preset: String, Sendable, CaseIterable {
        /// Pictures; `vips` of libvips-tools.
        case vips
        /// A telling frame of a video.
        case ffmpeg

        package var rule: DeriveRule {
            switch self {
            case .vips:
                DeriveRule(
                    name: "thumbnail",
                    // What is transparent becomes white; EXIF, and the place in it, stay with the original.
                    command: [
                        "vips", "thumbnail", input, output + "[Q=80,strip,background=255]", "512", "--height", "512",
                        "--size", "down", "--export-profile", "srgb",
                    ],
                    extensions: ["jpg", "jpeg", "png", "webp", "tif", "tiff", "heic", "heif", "avif", "gif"],
                    suffix: ".thumb.jpg")
            case .ffmpeg:
                // A playlist under a video's name would have other files read: only containers are opened. Frames are made
                // small before they are compared: fifty of 8K would take gigabytes.
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

    /// Square pixels, at most 512 by 512 of them and never more than there are; of 50 frames the most telling one.
    private static let smallFrame =
        "scale=w='trunc(iw*sar)':h=ih,scale=w='min(512,iw)':h='min(512,ih)':force_original_aspect_ratio=decrease,"
        + "setsar=1,thumbnail=50"

    /// The name of the folder, below the state directory's, for what is made of a root's files.
    package static func folder(of root: FilePath) -> String { KeySanitizer.hash(root.bytes) }
}

extension RouteTable {
    /// What is to be made of a file before it is admitted; nothing when it is refused, or nobody takes it.
    ///
    /// - Parameter facts: with `mediaType`, where a candidate asks for it.
    package func derivations(of arrival: FoundFile, facts: FileProperties) -> [DeriveRule] {
        guard hasDerivations else { return [] }
        guard let route = route(for: arrival.path, size: arrival.identity.size, mediaType: facts.mediaType),
            route.objection(to: arrival, facts) == nil
        else { return [] }
        return route.derive.filter { $0.isFor(arrival.path) }
    }
}
