# The release job fills in the address and the checksum of the source that it has published.
class Atlasbridge < Formula
  include Language::Python::Virtualenv

  desc "Asks you where you are when a terminal program waits for you"
  homepage "@HOMEPAGE@"
  url "@SDIST_URL@"
  sha256 "@SDIST_SHA256@"
  license "MIT"

  depends_on "python@3.13"

  def install
    venv = virtualenv_create(libexec, "python3.13")
    system libexec/"bin/python", "-m", "pip", "install", "--no-compile", buildpath
    bin.install_symlink libexec/"bin/atlasbridge"
    system bin/"atlasbridge", "help", "--man", "man"
    man1.install Dir["man/*.1"]
    venv
  end

  service do
    run [opt_bin/"atlasbridge", "hub", "start", "--foreground"]
    keep_alive successful_exit: false
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/atlasbridge version")
  end
end
