"""A real Spark cluster for tests: a standalone master and workers on loopback, from the pip package."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import likely

SOURCES = Path(likely.__file__).parents[1]
CORES, STARTING = 1, 120  # seconds: a loaded machine may take long for its first JVM
# Six JVMs live for a minute each: the second compiler and a collector with threads of its own would cost more than the tests.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def why_not() -> str:
    """Why no cluster can be started here; empty if one can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed (pip install 'likely[spark]')"
    java = shutil.which("java", path=os.environ.get("JAVA_HOME", "") + "/bin") or shutil.which("java")
    if java is None:
        return "there is no Java (Debian: openjdk-17-jre-headless)"
    found = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = found.partition('"')[2].partition(".")[0]
    return "" if version.isdecimal() and int(version) >= 17 else f"Java 17 is needed, this is {found.splitlines()[:1]}"


class Cluster:
    """A master and its workers; every process is in a group of its own, so that it can be killed with its executors."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.processes = folder, []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self.start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
                   "--webui-port", "0")
        self.wait("I have been elected leader", "master")
        for i in range(workers):
            self.start(f"worker{i}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", str(CORES),
                       "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"work{i}"), self.url)
        for i in range(workers):
            self.wait("Successfully registered", f"worker{i}")

    def start(self, name: str, *command: str) -> None:
        import pyspark

        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(SOURCES),
               "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
               "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen(
                [str(spark_class), *command], env=os.environ | own, stdout=log, stderr=log, start_new_session=True))

    def wait(self, words: str, name: str) -> None:
        until = time.monotonic() + STARTING
        while words not in (text := (self.folder / f"{name}.log").read_text(errors="replace")):
            assert time.monotonic() < until, f"{name} did not start: {text[-2000:]}"
            time.sleep(0.05)

    def session(self):
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        builder = SparkSession.builder.master(self.url).appName("tests")
        for name, value in {
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
            "spark.driver.host": "127.0.0.1", "spark.driver.memory": "512m", "spark.executor.memory": "512m",
            "spark.executor.cores": str(CORES), "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2",
            "spark.sql.adaptive.enabled": "false", "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.driver.extraJavaOptions": SHORT_LIVED, "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.session.timeZone": "UTC", "spark.locality.wait": "0s",
            "spark.executorEnv.PYTHONPATH": str(SOURCES),
        }.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def kill_worker(self) -> None:
        """Kill the last worker and its executors, as a lost machine would."""
        self.kill(self.processes.pop())

    @staticmethod
    def kill(process) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        while self.processes:
            self.kill(self.processes.pop())
