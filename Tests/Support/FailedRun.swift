internal import Foundation
package import SystemPackage

/// What an agent said in a test that failed is kept below the build folder: its own folder goes with the test.
package enum FailedRun {
    /// Where tests keep what outlives them: below the build folder; where there is none, below the temporary one.
    package static func folder(_ name: String) -> FilePath {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        let build = root.appending(".build")
        let hasBuild = FileManager.default.isWritableFile(atPath: build.string)
        return (hasBuild ? build : FilePath(NSTemporaryDirectory())).appending(name)
    }

    /// - Parameter log: all of it.
    /// - Returns: its end, and where the whole is: what stands behind what was expected.
    package static func told(_ log: String, of agent: String) -> String {
        let end = "\(agent) said at last:\n\(log.suffix(4000))"
        let folder = folder("failed-tests")
        let name = "\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: .min ... .max)).log"
        do {
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            let file = folder.appending(name)
            try Data(log.utf8).write(to: URL(fileURLWithPath: file.string))
            return "\(end)\nAll of it: \(file)"
        } catch {
            return "\(end)\nAll of it could not be kept: \(error)"
        }
    }
}
