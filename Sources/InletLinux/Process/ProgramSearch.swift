package import SystemPackage

/// Where programs are that are named without a path.
package enum ProgramSearch {
    /// `PATH`, or what a shell takes where there is none.
    package static var path: String {
        ProcessSetup.environment("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// The whole path of a program, as a shell would find it; nil where there is none that we may run.
    package static func find(_ word: String) -> FilePath? {
        if word.contains("/") { return ChildProcess.isExecutable(FilePath(word)) ? FilePath(word) : nil }
        return path.split(separator: ":").lazy.map { FilePath(String($0)).appending(word) }
            .first { $0.isAbsolute && ChildProcess.isExecutable($0) }
    }
}
