# depl as a service: Debian slim, CPU, an ordinary user.
#
#   docker build -t depl .                                  sparse runs
#   docker build -t depl --build-arg EXTRAS=neural .        also runs with an encoder (PyTorch, CPU)
#   docker run -p 127.0.0.1:8000:8000 -v "$PWD/runs:/runs" depl
#
# The last command serves the run folder runs/run; name another after the image: serve /runs/law ...
FROM python:3.11-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
ARG EXTRAS=""
ARG TORCH_INDEX="https://download.pytorch.org/whl/cpu"
COPY requirements.lock constraints.txt /tmp/
COPY --from=wheel /wheels /tmp/wheels
# What the service needs comes with hashes; the extras, which the lock file does not have, without.
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
    && pip install --no-cache-dir --no-deps /tmp/wheels/*.whl \
    && if [ -n "$EXTRAS" ]; then \
         pip install --no-cache-dir -c /tmp/constraints.txt --extra-index-url "$TORCH_INDEX" \
           "depl[$EXTRAS] @ file://$(ls /tmp/wheels/*.whl)"; \
       fi \
    && rm -rf /tmp/wheels /tmp/requirements.lock /tmp/constraints.txt \
    && useradd --system --uid 10001 --create-home depl \
    && mkdir /runs && chown depl /runs
USER depl
WORKDIR /runs
VOLUME /runs
# Compiled functions are kept where the root of the container may be read-only.
ENV NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["depl"]
CMD ["serve", "/runs/run", "--host", "0.0.0.0"]
