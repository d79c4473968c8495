import Foundation
import InletAgent
import InletCore
import InletLinux
import SystemPackage

/// Adds the first and the last frame of recordings to a report, by FFmpeg.
///
/// FFmpeg reads strangers' files. So it may write only in a folder of its own, as far as the kernel can enforce that. Its
/// time is bounded, and it opens no address.
struct FrameGrabber {
    private static let most = 1000
    private static let width = 192
    private static let timeout = Duration.seconds(20)
    /// For all recordings of a report.
    private static let patience = Duration.seconds(900)
    private static let largest = 64 << 10

    private let program: FilePath
    private let pool = BlockingPool(name: "frames", threads: 1)

    /// nil without FFmpeg.
    init?() {
        guard let program = ProgramFinder.find("ffmpeg") else { return nil }
        self.program = program
    }

    /// Recordings without a readable copy, and those that FFmpeg does not know, stay without pictures.
    func add(to report: inout OffloadReport) async throws {
        let end = ContinuousClock.now.advanced(by: Self.patience)
        var done = 0
        for index in report.files.indices where report.files[index].isVideo {
            guard done < Self.most, ContinuousClock.now < end, !Task.isCancelled else { return }
            guard let place = report.place(of: report.files[index]) else { continue }
            done += 1
            report.files[index].first_frame = try await frame(of: place, [])
            report.files[index].last_frame = try await frame(of: place, ["-sseof", "-1"])
        }
    }

    /// - Parameter seek: the options before the input.
    /// - Returns: nil where there is no such frame.
    private func frame(of file: FilePath, _ seek: [String]) async throws -> String? {
        let folder = try WorkFolder()
        let (input, output) = (folder.path.appending("in"), folder.path.appending("out.jpg"))
        try DurableFile.makeLink(input, to: file)
        // From a second before the end on, each frame replaces the one before it.
        let count = seek.isEmpty ? ["-frames:v", "1"] : ["-update", "1"]
        let arguments =
            [program.string, "-nostdin", "-v", "error", "-protocol_whitelist", "file"] + seek
            + ["-i", input.string, "-an"] + count + ["-vf", "scale=\(Self.width):-2", "-q:v", "6", output.string]
        var child = ChildProcess(arguments, environment: folder.environment, timeout: Self.timeout)
        (child.niceness, child.largestFile, child.leavesNobody) = (10, Int64(Self.largest), true)
        if Landlock.isAvailable { child.writesTo = (folder.name, folder.base) }
        let outcome = try await child.run(on: pool)
        guard outcome.failure == nil, let bytes = DurableFile.readIfPossible(output, limit: Self.largest),
            bytes.starts(with: [0xFF, 0xD8])
        else { return nil }
        return "data:image/jpeg;base64," + Data(bytes).base64EncodedString()
    }
}

extension OffloadReport.File {
    fileprivate var isVideo: Bool {
        let ending = path.split(separator: ".").last.map(String.init) ?? ""
        let type = MediaType.byExtension(ending)
        return type.hasPrefix("video/") || type == "application/mxf"
    }
}

extension OffloadReport {
    /// A copy in a folder, else the source; nil where neither is there.
    fileprivate func place(of file: File) -> FilePath? {
        let copies = file.deliveries.compactMap(\.url).filter { $0.hasPrefix("/") }
        if let copy = Self.first(of: copies, where: { $0.size == file.size }) { return copy }
        let mounts = (cards ?? []).filter { $0.name == file.card }.flatMap(\.insertions).compactMap(\.mount)
        let sources = batch == nil ? mounts.reversed() : [source]
        // At the source's path there may be another card's file by now.
        return Self.first(of: sources.map { "\($0)/\(file.path)" }) { found in
            let modified = WallTime(rfc3339: file.modified_at)?.milliseconds ?? 0
            let difference = WallTime(nanoseconds: found.modified).milliseconds - modified
            return found.size == file.size && abs(difference) <= 2000
        }
    }

    /// The first of these paths with such a file. An escaped path is another one.
    private static func first(of paths: [String], where isRight: (FileIdentity) -> Bool) -> FilePath? {
        paths.lazy.filter { !$0.contains("\\") }.map { FilePath($0) }.first { path in
            FileLook.file(at: RootedPath("", path)).map(isRight) ?? false
        }
    }
}
