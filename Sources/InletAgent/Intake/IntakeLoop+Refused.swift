internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Files that the root's rule leaves out, until they change.
extension IntakeLoop {
    /// Says what was left out, once a listing that runs has ended, and has the kernel tell when a file loses a name.
    mutating func followRefused() {
        for path in admission.refused.takeLinked() { watch.follow(linked: path) }
        guard scan.isIdle else { return }
        for news in admission.refused.takeNews() {
            log.emit(
                .fileIgnored(path: settings.path.pushing(news.path), reason: news.refusal.reason(files: news.files)))
        }
    }
}
