import CLinux
import Glibc
import InletCore
package import SystemPackage

extension Folder {
    /// The longest name in bytes that its file system is sure to take (`statvfs(3)`); never more than most have. Some count
    /// in letters, and take longer ones. Blocks.
    package var longestName: Int {
        let all = FilePath.Component.longest
        var status = statvfs()
        let isKnown = apart { path in path.withPlatformString { statvfs($0, &status) } == 0 }
        // Network file systems may answer with 0.
        return isKnown && status.f_namemax >= 64 ? min(Int(clamping: status.f_namemax), all) : all
    }

    /// Whether its file system can have such a name at all: it is asked for it.
    package func canHold(_ name: FilePath.Component) throws(SystemError) -> Bool {
        do throws(SystemError) {
            _ = try look(name)
            return true
        } catch  where error.code == .fileNameTooLong {
            return false
        }
    }
}
